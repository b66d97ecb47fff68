// The fields of a generating request, and the table of them: those of the bodies that the server takes, of Python's calls
// and of commands. Who reads a request visits the table; docs/server.md, Python's stub and its help are checked against
// it or made of it.
// Thread rule: the table never changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "zinc_rt/request.h"

namespace zinc_rt {

struct Bounds {
  double least = 0, most = 0;
};

// A row of the table. A name has several rows where it means different things to those who take it.
struct RequestField {
  // Who takes it. The server's are called by the last words of their paths.
  enum TakenBy : std::uint32_t {
    kChat = 1,             // /v1/chat/completions
    kCompletion = 2,       // /v1/completions
    kGenerate = 4,         // /generate
    kMessages = 8,         // /v1/messages
    kResponses = 16,       // /v1/responses
    kOllamaChat = 32,      // /api/chat
    kOllamaGenerate = 64,  // /api/generate
    kOllamaOptions = 128,  // the `options` of both
    kPython = 256,         // Session.generate and all that call it
    kCommand = 512,        // run, chat: sampling
  };
  using Member =
      std::variant<std::monostate, float Request::*, double Request::*, std::uint32_t Request::*, bool Request::*,
                   std::string Request::*, std::optional<bool> Request::*, std::optional<std::uint32_t> Request::*,
                   std::optional<std::uint64_t> Request::*, std::vector<std::string> Request::*,
                   std::vector<std::int32_t> Request::*, std::map<std::int32_t, float> Request::*>;

  const char* name;
  std::uint32_t taken_by;             // bits of TakenBy
  Member member = {};                 // that takes the value as it is; none: its reader does more than that
  const char* type = "";              // where there is no member: what value is wanted
  Bounds bounds = {};                 // of a number; most: bytes of a text, entries of a list. 0 to 0: none
  std::optional<Bounds> of_api = {};  // what the server's bodies may have, where that is less
  const char* help = "";              // for one line

  const Bounds& api_bounds() const { return of_api ? *of_api : bounds; }
};

std::span<const RequestField> request_fields();

// What the server takes for the field, in words: "0 to 2", "true or false", "a text of at most 256 bytes".
std::string wanted_value(const RequestField& field);
// The names of those in `taken_by`, as docs/server.md has them, joined by commas.
std::string taker_names(std::uint32_t taken_by);

}  // namespace zinc_rt
