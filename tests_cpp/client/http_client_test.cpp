#include "client/http_client.h"

#include <future>

#include "client/openai_client.h"
#include "tests_cpp/client/canned_server.h"

namespace zinc_rt::client {
namespace {

struct Outcome {
  int status = 0;
  std::string body;
  HttpEnd end;
};

// Runs one GET and waits for its end; `limit`: hangs up after so many bytes.
Outcome get(HttpClient& client, double timeout_s = 20, std::size_t limit = SIZE_MAX) {
  Outcome out;
  std::promise<void> over;
  HttpCall call;
  call.target = "/x";
  call.timeout_s = timeout_s;
  HttpEvents events;
  events.on_head = [&](int status, const Headers&) { out.status = status; };
  events.on_body = [&](std::string_view piece) {
    out.body += piece;
    return out.body.size() < limit;
  };
  events.on_end = [&](const HttpEnd& end) {
    out.end = end;
    over.set_value();
  };
  client.start(std::move(call), std::move(events));
  over.get_future().wait();
  return out;
}

Outcome get_once(const std::string& answer, bool by_bytes = false) {
  CannedServer server([&](int socket, int) {
    CannedServer::request(socket);
    for (std::size_t i = 0; i < answer.size(); i += by_bytes ? 1 : answer.size())
      CannedServer::send(socket, by_bytes ? answer.substr(i, 1) : answer);
  });
  const auto client = HttpClient::open(server.url());
  EXPECT_TRUE(client);
  return get(**client);
}

TEST(HttpClientTest, BodiesOfEveryKindAreRead) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const bool by_bytes : {false, true})
    for (const std::string& answer :
         {head + "Content-Length: 5\r\n\r\nhello",
          head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", head + "\r\nhello"}) {
      const auto got = get_once(answer, by_bytes);
      EXPECT_EQ(got.end.kind, HttpEnd::kWhole) << got.end.error;
      EXPECT_EQ(got.status, 200);
      EXPECT_EQ(got.body, "hello");
    }
}

TEST(HttpClientTest, APieceIsThereBeforeTheNextOneIsSent) {
  std::promise<void> had_first;
  CannedServer server([&](int socket, int) {
    CannedServer::request(socket);
    CannedServer::send(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n");
    EXPECT_EQ(had_first.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    CannedServer::send(socket, "3\r\nllo\r\n0\r\n\r\n");
  });
  const auto client = HttpClient::open(server.url());
  ASSERT_TRUE(client);
  std::string body;
  std::promise<void> over;
  HttpEvents events;
  events.on_body = [&](std::string_view piece) {
    if (body.empty()) had_first.set_value();
    body += piece;
    return true;
  };
  events.on_end = [&](const HttpEnd&) { over.set_value(); };
  (*client)->start({}, std::move(events));
  over.get_future().wait();
  EXPECT_EQ(body, "hello");
}

TEST(HttpClientTest, WhatIsCutOffOrNoHttpIsSaid) {
  for (const char* answer : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", "nonsense\r\n\r\n"}) {
    const auto got = get_once(answer);
    EXPECT_EQ(got.end.kind, HttpEnd::kIncomplete) << answer;
    EXPECT_NE(got.end.error.find("cut off"), std::string::npos) << got.end.error;
  }
}

TEST(HttpClientTest, AConnectionIsUsedAgainAndNotAfterItWasClosed) {
  CannedServer server([](int socket, int) {
    for (int i = 0; i < 2 && !CannedServer::request(socket).empty(); ++i)
      CannedServer::send(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  });
  const auto client = HttpClient::open(server.url());
  ASSERT_TRUE(client);
  for (int i = 0; i < 6; ++i) {
    const auto got = get(**client);
    EXPECT_EQ(got.end.kind, HttpEnd::kWhole) << got.end.error;
    while (i % 2 == 1 && server.n_connections() * 2 < i + 1) std::this_thread::yield();
    if (i % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the server's FIN is here
  }
  EXPECT_EQ(server.n_connections(), 3);
}

TEST(HttpClientTest, NobodyThereIsSaid) {
  Url url;
  {
    const CannedServer server([](int, int) {});
    url = server.url();
  }
  const auto client = HttpClient::open(url);
  ASSERT_TRUE(client);
  const auto got = get(**client);
  EXPECT_EQ(got.end.kind, HttpEnd::kNoConnect);
  EXPECT_NE(got.end.error.find(url.authority()), std::string::npos);
}

TEST(HttpClientTest, SilenceEndsAtTheTimeLimit) {
  std::promise<void> over;
  CannedServer server([&](int socket, int) {
    CannedServer::request(socket);
    over.get_future().wait();
  });
  const auto client = HttpClient::open(server.url());
  ASSERT_TRUE(client);
  EXPECT_EQ(get(**client, 0.05).end.kind, HttpEnd::kTimeout);
  over.set_value();
}

TEST(HttpClientTest, AReaderMayHangUp) {
  std::promise<bool> left;
  CannedServer server([&](int socket, int) {
    CannedServer::request(socket);
    CannedServer::send(socket, "HTTP/1.1 200 OK\r\n\r\nhello");
    char byte;
    left.set_value(::recv(socket, &byte, 1, 0) <= 0);
  });
  const auto client = HttpClient::open(server.url());
  ASSERT_TRUE(client);
  const auto got = get(**client, 20, 3);
  EXPECT_EQ(got.end.kind, HttpEnd::kCancelled);
  EXPECT_TRUE(left.get_future().get());
}

TEST(HttpClientTest, AHandleCancelsAndAClientsEndEndsItsCalls) {
  std::promise<void> over;
  CannedServer server([&](int socket, int number) {
    CannedServer::request(socket);
    if (number == 1) over.get_future().wait();
    char byte;
    ::recv(socket, &byte, 1, 0);
  });
  std::shared_ptr<HttpHandle> last;
  std::atomic<int> n_cancelled{0};
  {
    const auto client = HttpClient::open(server.url());
    ASSERT_TRUE(client);
    const auto begin = [&] {
      HttpEvents events;
      events.on_end = [&](const HttpEnd& end) { n_cancelled += end.kind == HttpEnd::kCancelled; };
      return (*client)->start({}, std::move(events));
    };
    begin()->cancel();
    while (n_cancelled == 0) std::this_thread::yield();
    last = begin();
    begin();
    over.set_value();
  }
  EXPECT_EQ(n_cancelled, 3);
  last->cancel();  // after its client: nothing
}

// The API over canned answers: what each came to.
struct Said {
  std::string text;
  ApiEnd end;
};

Said say(const std::string& answer) {
  CannedServer server([&](int socket, int) {
    const auto head = CannedServer::request(socket);
    EXPECT_TRUE(head.starts_with("POST /v1/completions ")) << head;
    EXPECT_NE(head.find("Authorization: Bearer k\r\n"), std::string::npos);
    CannedServer::send(socket, answer);
  });
  const auto client = HttpClient::open(server.url());
  EXPECT_TRUE(client);
  Said said;
  std::promise<void> over;
  ApiEvents events;
  events.on_piece = [&](const ApiPiece& piece) {
    said.text += piece.text;
    return true;
  };
  events.on_end = [&](const ApiEnd& end) {
    said.end = end;
    over.set_value();
  };
  stream(**client, {server.url(), "k"}, {{"prompt", "a"}}, 20, std::move(events));
  over.get_future().wait();
  return said;
}

TEST(OpenAiClientTest, AStreamIsTextReasonAndUsage) {
  const auto said =
      say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
          "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n: beat\n\n"
          "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n"
          "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
          "\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(said.text, "ab");
  EXPECT_EQ(said.end.error, "");
  EXPECT_EQ(said.end.finish_reason, "stop");
  ASSERT_TRUE(said.end.usage);
  EXPECT_EQ(said.end.usage->prompt_tokens, 3u);
  EXPECT_EQ(said.end.usage->completion_tokens, 2u);
  EXPECT_EQ(said.end.usage->cached_tokens, 1u);
}

TEST(OpenAiClientTest, ErrorsAreTheServersWords) {
  const auto refused =
      say("HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 40\r\n\r\n{\"error\":{\"message\":\"too fast, "
          "friend\"}}");
  EXPECT_EQ(refused.end.status, 429);
  EXPECT_EQ(refused.end.error, "status 429 Too Many Requests: too fast, friend");
  EXPECT_EQ(refused.end.retry_after_s, 7);
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  EXPECT_EQ(say(head + "data: {\"error\":{\"message\":\"the device failed\"}}\n\n").end.error, "the device failed");
  EXPECT_EQ(say(head + "data: {\"choices\":[{\"text\":\"a\"}]}\n\n").end.error,
            "the stream ended before the answer did");
  EXPECT_EQ(say(head + "data: nonsense\n\n").end.error, "an event of the answer is no JSON object");
  EXPECT_EQ(say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").end.error, "the answer is no stream of events");
}

TEST(OpenAiClientTest, AStatusWithoutWordsIsAnErrorToo) {
  EXPECT_EQ(say("HTTP/1.1 502 Oops\r\nContent-Length: 0\r\n\r\n").end.error, "status 502 Bad Gateway");
  EXPECT_EQ(say("HTTP/1.1 204 No Content\r\n\r\n").end.error, "status 204 No Content");
  EXPECT_EQ(say("HTTP/1.1 301 Moved\r\nLocation: https://a/\r\nContent-Length: 0\r\n\r\n").end.error,
            "status 301 Moved Permanently, to https://a/");
  EXPECT_EQ(say("HTTP/1.1 799 X\r\nContent-Length: 0\r\n\r\n").end.error, "status 799");
}

}  // namespace
}  // namespace zinc_rt::client
