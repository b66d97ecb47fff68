// Input: a JSON schema. Whatever the bytes are, it is refused or becomes a grammar whose masks hold.
#include "tests_cpp/fuzz/grammar_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zinc_rt::grammar::try_grammar(zinc_rt::grammar::SourceKind::kJsonSchema, data, size);
  return 0;
}
