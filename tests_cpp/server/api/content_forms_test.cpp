// All forms of content, in each API: the prompt that becomes of them, or the field that is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/conversation.h"
#include "server/api/generation_call.h"

namespace zinc_rt::server {
namespace {

using Parse = ApiResult<GenerationCall> (*)(const Json&, const Request&, Ignored);

// What a template writes: of each turn its role, its reasoning, its text and its calls.
std::string written(const Json& messages) {
  std::string out;
  for (const Json& m : messages) {
    out += m.at("role").get<std::string>() + ":";
    if (m.contains("reasoning_content")) out += "(" + m["reasoning_content"].get<std::string>() + ")";
    const Json& content = m.at("content");
    // Parts stay parts, since some templates take these alone; here they are written as one that takes texts has them.
    for (std::size_t i = 0; content.is_array() && i < content.size(); ++i)
      out += (i == 0 ? "" : "\n") + content[i].at("text").get<std::string>();
    if (!content.is_array()) out += content.get<std::string>();
    for (const Json& call : m.value("tool_calls", Json::array())) {
      const Json& f = call.at("function");
      const Json& arguments = f.at("arguments");
      out += "[" + f.at("name").get<std::string>() + " ";
      out += (arguments.is_string() ? arguments.get<std::string>() : as_text(arguments)) + "]";
    }
    out += ";";
  }
  return out;
}

// The prompt, or "400 FIELD".
std::string prompt_of(Parse parse, const std::string& body) {
  const auto json = parse_json(body);
  if (!json) return "body: " + json.error().message;
  const auto call = parse(*json, {}, nullptr);
  if (!call) return fmt::format("{} {}", call.error().status, call.error().param);
  const auto chat = call->requests.at(0).conversation;
  return chat == nullptr ? "no messages" : written(chat->messages);
}

struct Row {
  const char *given, *wanted;
};

// `given`: the messages behind a first turn of the user's.
void check(Parse parse, const char* body, const std::vector<Row>& rows) {
  for (const auto& [given, wanted] : rows) {
    std::string text = body;
    text.replace(text.find("GIVEN"), 5, given);
    EXPECT_EQ(prompt_of(parse, text), wanted) << given;
  }
}

TEST(ContentForms, OfChatCompletions) {
  check(
      parse_chat, R"({"messages":[{"role":"user","content":"q"},GIVEN]})",
      {{R"({"role":"user","content":"a"})", "user:q;user:a;"},
       {R"({"role":"user","content":""})", "user:q;user:;"},
       {R"({"role":"user","content":[]})", "user:q;user:;"},
       {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})", "user:q;user:a\nb;"},
       {R"({"role":"user","content":null})", "400 messages[1].content"},
       {R"({"role":"user"})", "400 messages[1].content"},
       {R"({"role":"user","content":5})", "400 messages[1].content"},
       {R"({"role":"user","content":{"type":"text","text":"a"}})", "400 messages[1].content"},
       {R"({"role":"user","content":["a"]})", "400 messages[1].content[0]"},
       {R"({"role":"user","content":[{"type":"text"}]})", "400 messages[1].content[0].text"},
       {R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})",
        "400 messages[1].content[0].type"},
       {R"({"role":"user","content":[{"type":"refusal","refusal":"no"}]})", "400 messages[1].content[0].type"},
       {R"({"role":"user","content":"a","refusal":"no"})", "400 messages[1].refusal"},
       {R"({"role":"system","content":[{"type":"text","text":"a"}]})", "user:q;system:a;"},
       {R"({"role":"developer","content":"a"})", "user:q;system:a;"},
       {R"({"role":"assistant","content":null})", "user:q;assistant:;"},
       {R"({"role":"assistant"})", "user:q;assistant:;"},
       {R"({"role":"assistant","content":[]})", "user:q;assistant:;"},
       {R"({"role":"assistant","content":"a","refusal":null,"annotations":[],"tool_calls":null})",
        "user:q;assistant:a;"},
       {R"({"role":"assistant","content":"a","annotations":[{"type":"url_citation"}]})", "400 messages[1].annotations"},
       {R"({"role":"assistant","content":null,"refusal":"I cannot."})", "user:q;assistant:I cannot.;"},
       {R"({"role":"assistant","content":"So.","refusal":"I cannot."})", "user:q;assistant:So.\nI cannot.;"},
       {R"({"role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]})", "user:q;assistant:I cannot.;"},
       {R"({"role":"assistant","content":[{"type":"text","text":"So."},{"type":"refusal","refusal":"No."}]})",
        "user:q;assistant:So.\nNo.;"},
       {R"({"role":"assistant","content":[{"type":"refusal","text":"no"}]})", "400 messages[1].content[0].refusal"},
       {R"({"role":"assistant","content":null,"reasoning_content":"hm"})", "user:q;assistant:(hm);"},
       {R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":  1.50}"}}]})",
        "user:q;assistant:[f {\"a\":  1.50}];"},
       {R"({"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"}]})", "user:q;tool:r;"},
       {R"({"role":"tool","tool_call_id":"c","content":[]})", "user:q;tool:;"},
       {R"({"role":"tool","tool_call_id":"c","content":null})", "400 messages[1].content"}});
}

TEST(ContentForms, OfMessages) {
  check(
      parse_messages, R"({"max_tokens":1,"messages":[{"role":"user","content":"q"},GIVEN]})",
      {{R"({"role":"user","content":"a"})", "user:q;user:a;"},
       {R"({"role":"user","content":[]})", "user:q;user:;"},
       {R"({"role":"assistant","content":[]})", "user:q;assistant:;"},
       {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})", "user:q;user:a\nb;"},
       {R"({"role":"user","content":null})", "400 messages[1].content"},
       {R"({"role":"user"})", "400 messages[1].content"},
       {R"({"role":"user","content":["a"]})", "400 messages[1].content[0]"},
       {R"({"role":"user","content":[{"type":"image","source":{}}]})", "400 messages[1].content[0].type"},
       {R"({"role":"user","content":[{"type":"document","source":{}}]})", "400 messages[1].content[0].type"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]})", "user:q;tool:;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]})", "user:q;tool:r;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[]}]})", "user:q;tool:;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"},{"type":"text","text":"s"}]}]})",
        "user:q;tool:r\ns;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]}]})",
        "400 messages[1].content[0].content[0]"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"no such file"}]})",
        "user:q;tool:Error: no such file;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"Error: x"}]})",
        "user:q;tool:Error: x;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true}]})",
        "user:q;tool:Error;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":false,"content":"r"}]})",
        "user:q;tool:r;"},
       {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":"yes","content":"r"}]})",
        "400 messages[1].content[0].is_error"},
       {R"({"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}]})",
        "user:q;assistant:(hm)a[f {}];"},
       {R"({"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]})",
        "user:q;assistant:a;"},
       {R"({"role":"assistant","content":[{"type":"server_tool_use","id":"c","name":"f","input":{}}]})",
        "400 messages[1].content[0].type"},
       {R"({"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":"{}"}]})",
        "400 messages[1].content[0].input"},
       {R"({"role":"user","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]})",
        "400 messages[1].content[0].type"}});
}

TEST(ContentForms, OfResponses) {
  check(
      parse_responses, R"({"input":[{"role":"user","content":"q"},GIVEN]})",
      {{R"({"role":"user","content":"a"})", "user:q;user:a;"},
       {R"({"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]})",
        "user:q;user:a\nb;"},
       {R"({"type":null,"role":"user","content":[]})", "user:q;user:;"},
       {R"({"role":"user","content":null})", "400 input[1].content"},
       {R"({"role":"user"})", "400 input[1].content"},
       {R"({"role":"user","content":[{"type":"input_image","image_url":"x"}]})", "400 input[1].content[0].type"},
       {R"({"role":"user","content":[{"type":"input_file","file_id":"x"}]})", "400 input[1].content[0].type"},
       {R"({"role":"developer","content":"a"})", "user:q;system:a;"},
       {R"({"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]})",
        "user:q;assistant:a;"},
       {R"({"role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]})", "user:q;assistant:I cannot.;"},
       {R"({"role":"assistant","content":[]})", "user:q;assistant:;"},
       {R"({"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":  1.50}"})",
        "user:q;assistant:[f {\"a\":  1.50}];"},
       {R"({"type":"function_call_output","call_id":"c","output":"r"})", "user:q;tool:r;"},
       {R"({"type":"function_call_output","call_id":"c","output":""})", "user:q;tool:;"},
       {R"({"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]})",
        "user:q;tool:r;"},
       {R"({"type":"function_call_output","call_id":"c"})", "400 input[1].output"},
       {R"({"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]})",
        "400 input[1].output[0].type"},
       {R"({"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}],"summary":[{"type":"summary_text","text":"s"}]})",
        "user:q;assistant:(hm);"},
       {R"({"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]})", "user:q;assistant:(hm);"},
       {R"({"type":"reasoning","summary":[]})", "user:q;assistant:;"},
       {R"({"type":"item_reference","id":"x"})", "400 input[1].type"}});
}

TEST(ContentForms, OfOllama) {
  check(parse_ollama_chat, R"({"model":"m","messages":[{"role":"user","content":"q"},GIVEN]})",
        {{R"({"role":"user","content":"a"})", "user:q;user:a;"},
         {R"({"role":"user","content":""})", "user:q;user:;"},
         {R"({"role":"user","content":null})", "user:q;user:;"},
         {R"({"role":"user"})", "user:q;user:;"},
         {R"({"role":"user","content":5})", "400 messages[1].content"},
         {R"({"role":"user","content":"a","images":[]})", "user:q;user:a;"},
         {R"({"role":"user","content":"a","images":["aGk="]})", "400 messages[1].images"},
         {R"({"role":"assistant","content":"a","thinking":"hm"})", "user:q;assistant:(hm)a;"},
         {R"({"role":"assistant","content":"a","thinking":true})", "400 messages[1].thinking"},
         {R"({"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"f","arguments":{}}}]})",
          "user:q;assistant:[f {}];"},
         {R"({"role":"assistant","content":"a","tool_calls":[]})", "user:q;assistant:a;"},
         {R"({"role":"tool","tool_name":"f","content":"r"})", "user:q;tool:r;"}});
}

// Numbers reach the prompt as they were written, by every way that has any.
TEST(ContentForms, NumbersOfCallsAndToolsStay) {
  for (const std::string n : {"9223372036854775808", "18446744073709551616", "-123456789012345678901", "1.0", "0.10",
                              "1e5", "-0", "1E400", "0.12345678901234567890"}) {
    const auto has = [&](Parse parse, std::string body) {
      for (auto at = body.find("N"); at != std::string::npos; at = body.find("N", at + n.size()))
        body.replace(at, 1, n);
      const auto json = parse_json(body);
      ASSERT_TRUE(json) << json.error().message;
      const auto call = parse(*json, {}, nullptr);
      ASSERT_TRUE(call) << call.error().message << " " << body;
      const Request& q = call->requests.at(0);
      ASSERT_TRUE(q.conversation);
      const auto messages = as_text(q.conversation->messages), tools = as_text(q.conversation->tools);
      EXPECT_NE(messages.find("\"x\":" + n + "}"), std::string::npos) << messages;
      EXPECT_NE(tools.find("\"maximum\":" + n + "}"), std::string::npos) << tools;
      EXPECT_NE(q.output_format.text.find("\"const\":" + n + "}"), std::string::npos) << q.output_format.text;
    };
    const std::string schema = R"({"type":"object","properties":{"x":{"maximum":N}}})", wanted = R"({"const":N})";
    has(parse_chat,
        R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":N}}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":)" +
            schema + R"(}}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":)" + wanted +
            "}}}");
    has(parse_messages,
        R"({"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"x":N}}]}],"tools":[{"name":"f","input_schema":)" +
            schema + R"(}],"output_config":{"format":{"type":"json_schema","schema":)" + wanted + "}}}");
    has(parse_ollama_chat,
        R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":N}}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":)" +
            schema + R"(}}],"format":)" + wanted + "}");
  }
}

}  // namespace
}  // namespace zinc_rt::server
