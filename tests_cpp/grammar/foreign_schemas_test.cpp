// The schemas that pydantic and zod make of ordinary models (tests_py/data) compile. What they allow is valid:
// tests_py/test_foreign_schemas.py.
#include <fstream>

#include "base/json_number.h"
#include "grammar/json_reader.h"
#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

TEST(ForeignSchemas, CompileButForSets) {
  for (const char* name : {"pydantic", "zod"}) {
    std::ifstream file(std::string(ZRT_SOURCE_DIR "/tests_py/data/") + name + "_schemas.jsonl");
    std::string line;
    ASSERT_TRUE(std::getline(file, line)) << name;
    int n = 0;
    for (; std::getline(file, line); ++n) {
      const auto one = read_json(line, Limits());
      ASSERT_TRUE(one) << line;
      const auto made = compile({SourceKind::kJsonSchema, dump_json((*one)["schema"]), {}});
      const bool is_set = line.contains("uniqueItems");
      EXPECT_EQ(made.has_value(), !is_set) << (*one)["name"] << (made ? "" : made.error().message);
      if (is_set && !made) {
        EXPECT_NE(made.error().message.find("/uniqueItems: this keyword is not enforced"), std::string::npos);
      }
    }
    EXPECT_GT(n, 60) << name;
  }
}

}  // namespace
}  // namespace zinc_rt::grammar
