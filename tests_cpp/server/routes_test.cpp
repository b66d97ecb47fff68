// The paths that the server has, and those that docs/server.md tells of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/access_log.h"
#include "server/core.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt::server {
namespace {

using Paths = std::set<std::string>;  // "GET /livez"

// A cell such as "GET, POST /v1/tenants; DELETE /v1/tenants/{id}": each part has methods, then paths.
void add_cell(const std::string& cell, Paths& paths) {
  std::stringstream parts(cell);
  for (std::string part; std::getline(parts, part, ';');) {
    std::ranges::replace(part, ',', ' ');
    std::stringstream words(part);
    std::vector<std::string> methods;
    for (std::string word; words >> word;) {
      if (!word.starts_with('/'))
        methods.push_back(word);
      else
        for (const auto& method : methods) paths.insert(method + " " + word);
    }
  }
}

Paths documented() {
  std::ifstream in(ZRT_SOURCE_DIR "/docs/server.md");
  Paths paths;
  bool is_inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) is_inside = line == "## Paths";
    if (is_inside && line.starts_with("| ") && line.find(" /") != std::string::npos)
      add_cell(line.substr(2, line.find(" |", 2) - 2), paths);
  }
  return paths;
}

Paths served() {
  auto engine = Engine::start();
  auto store = StateStore::open("");
  EXPECT_TRUE(engine && store);
  ServerCore core(std::move(*engine), std::move(*store), "0");
  Router router;
  add_generation_routes(router, core);
  add_messages_routes(router, core);
  add_responses_routes(router, core);
  add_ollama_routes(router, core);
  add_embedding_routes(router, core);
  add_rerank_routes(router, core);
  add_stream_routes(router, core);
  add_file_routes(router, core);
  add_batch_routes(router, core);
  add_model_routes(router, core);
  add_prefix_routes(router, core);
  add_tenant_routes(router, core);
  add_health_routes(router, core);
  add_ui_routes(router, core);
  const auto module = std::filesystem::temp_directory_path() / fmt::format("zrt_module_{}.wasm", ::getpid());
  EXPECT_FALSE(add_local_page_routes(router, core, module)) << "there is no file";
  std::ofstream(module) << "text";
  EXPECT_FALSE(add_local_page_routes(router, core, module)) << "it is no module";
  std::ofstream(module) << std::string_view("\0asm", 4);
  EXPECT_TRUE(add_local_page_routes(router, core, module));
  std::filesystem::remove(module);
  Paths paths;
  for (const Route& route : router.routes()) {
    auto path = route.path.starts_with("/ui/") ? "/ui/*" : route.path;
    if (const auto star = path.find("*}"); star != std::string::npos) path.erase(star, 1);
    paths.insert(std::string(route.method) + " " + path);
  }
  EXPECT_TRUE(core.close());
  return paths;
}

TEST(Routes, DocumentationHasThemAllAndNoOthers) {
  EXPECT_EQ(documented(), served());
}

TEST(AccessLog, ALineWithoutWhatIsNotKnown) {
  AnsweredRequest request;
  request.address = "::1";
  const auto line = access_line(request, std::chrono::system_clock::time_point{}, false);
  EXPECT_EQ(line, "1970-01-01T00:00:00.000Z ::1 - - - 499 0 bytes 0.0 ms complete=false");
}

TEST(AccessLog, TextOfClientsStaysWithinItsField) {
  AnsweredRequest request{"a", "GET", "/a\nb=\x7F\xC2\x85", 200, 3, 1.25, true, {}};
  request.notes = {{"tenant", "t u"}, {"model", "m=\"\r"}, {"prompt_tokens", "7"}};
  EXPECT_EQ(access_line(request, std::chrono::system_clock::time_point(std::chrono::milliseconds(1)), false),
            "1970-01-01T00:00:00.001Z a \"t u\" GET \"/a\\nb=\\u007f\\u0085\" 200 3 bytes 1.2 ms model=\"m=\\\"\\r\" "
            "prompt_tokens=7");
  const auto json = Json::parse(access_line(request, {}, true));
  EXPECT_EQ(json["path"], request.path);
  EXPECT_EQ(json["tenant"], "t u");
  EXPECT_EQ(json["prompt_tokens"], 7);
  EXPECT_EQ(json["complete"], true);
}

}  // namespace
}  // namespace zinc_rt::server
