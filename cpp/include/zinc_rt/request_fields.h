// Defines a table of the fields of a generation request: in the bodies that the server accepts, in Python's calls and
// in commands. Code that reads a request iterates over the table. docs/server.md, Python's stub and its help texts are
// generated from the table or checked against it.
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

// RequestField is a row of the table. A name has several rows if it means different things in different APIs.
struct RequestField {
  // TakenBy lists the APIs that accept the field. The server's APIs are named after the last words of their paths.
  enum TakenBy : std::uint32_t {
    kChat = 1,             // /v1/chat/completions
    kCompletion = 2,       // /v1/completions
    kGenerate = 4,         // /generate
    kMessages = 8,         // /v1/messages
    kResponses = 16,       // /v1/responses
    kOllamaChat = 32,      // /api/chat
    kOllamaGenerate = 64,  // /api/generate
    kOllamaOptions = 128,  // the object `options` in both Ollama bodies
    kPython = 256,         // Session.generate and the methods that call it
    kCommand = 512,        // the commands run and chat; only sampling fields
  };
  using Member =
      std::variant<std::monostate, float Request::*, double Request::*, std::uint32_t Request::*, bool Request::*,
                   std::string Request::*, std::optional<bool> Request::*, std::optional<std::uint32_t> Request::*,
                   std::optional<std::uint64_t> Request::*, std::vector<std::string> Request::*,
                   std::vector<std::int32_t> Request::*, std::map<std::int32_t, float> Request::*>;

  const char* name;
  std::uint32_t taken_by;  // the APIs that accept the field, as bits of TakenBy
  // The member of Request in which the value is stored unchanged. If it is monostate, code of each API reads the field.
  Member member = {};
  const char* type = "";  // the expected type in words, if `member` is monostate
  // Bounds of a number. For a text, `most` limits its bytes; for a list, its number of elements. 0 to 0 means no
  // bounds.
  Bounds bounds = {};
  std::optional<Bounds> of_api = {};  // narrower bounds for the bodies that the server accepts, if any
  const char* help = "";              // help text of one line

  const Bounds& api_bounds() const { return of_api ? *of_api : bounds; }
};

std::span<const RequestField> request_fields();

// Returns a description of the values that the server accepts, such as "0 to 2", "true or false" or "a text of at most
// 256 bytes".
std::string wanted_value(const RequestField& field);
// Returns the names of the APIs in `taken_by` as docs/server.md writes them, joined by commas.
std::string taker_names(std::uint32_t taken_by);

}  // namespace zinc_rt
