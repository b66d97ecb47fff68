#include "hub/reference.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/near_name.h"
#include "hub/catalogue.h"

namespace zinc_rt::hub {
namespace {

constexpr std::string_view kForms =
    "a name of `zinc-rt models --catalogue`, OWNER/REPO[:QUANT] of Hugging Face, ollama:NAME[:TAG] or a URL wanted";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_word(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

// Returns whether the text consists of `least` to `most` words that are separated by slashes.
bool is_path(std::string_view text, std::size_t least, std::size_t most) {
  std::size_t n = 0;
  for (;;) {
    const auto slash = std::min(text.find('/'), text.size());
    if (!is_word(text.substr(0, slash))) return false;
    ++n;
    if (slash == text.size()) return n >= least && n <= most;
    text.remove_prefix(slash + 1);
  }
}

std::unexpected<Error> wrong(std::string_view text) {
  return fail(StatusCode::kInvalidArgument, "[pull] \"{}\" is no model's name: {}", text.substr(0, 200), kForms);
}

// Removes the end of the address of a web page, such as "/tree/main", so that users can paste a browser's address.
std::string_view without_page(std::string_view repository) {
  for (const std::string_view page : {"/tree/main", "/blob/main", "/"})
    if (repository.ends_with(page)) repository.remove_suffix(page.size());
  return repository;
}

Result<Reference> hugging_face(std::string_view given, std::string_view rest) {
  Reference out{.kind = Reference::kHuggingFace};
  const auto colon = std::min(rest.find(':'), rest.size());
  out.repository = without_page(rest.substr(0, colon));
  if (colon < rest.size()) {
    out.tag = rest.substr(colon + 1);
    if (!is_path(out.tag, 1, 4)) return wrong(given);
  }
  if (!is_path(out.repository, 2, 2)) return wrong(given);
  return out;
}

Result<Reference> ollama(std::string_view given, std::string_view rest) {
  Reference out{.kind = Reference::kOllama, .tag = "latest"};
  const auto colon = std::min(rest.find(':'), rest.size());
  out.repository = rest.substr(0, colon);
  if (colon < rest.size()) out.tag = rest.substr(colon + 1);
  if (!is_path(out.repository, 1, 2) || !is_word(out.tag)) return wrong(given);
  if (out.repository.find('/') == std::string::npos) out.repository = "library/" + out.repository;
  return out;
}

}  // namespace

std::string Reference::text() const {
  const auto with_tag = [&](std::string_view prefix, std::string_view name) {
    return std::string(prefix) + std::string(name) + (tag.empty() ? "" : ":" + tag);
  };
  if (kind == kHuggingFace) return with_tag("hf:", repository);
  if (kind == kOllama)
    return with_tag("ollama:", std::string_view(repository).substr(repository.starts_with("library/") ? 8 : 0));
  return repository;
}

Result<Reference> parse_reference(std::string_view text) {
  auto rest = text;
  if (take(rest, "hf:") || take(rest, "hf.co/") || take(rest, "huggingface.co/")) return hugging_face(text, rest);
  if (take(rest, "ollama:") || take(rest, "ollama.com/library/") || take(rest, "ollama.com/"))
    return ollama(text, rest);
  if (take(rest, "https://huggingface.co/") || take(rest, "https://hf.co/"))
    if (is_path(without_page(rest), 2, 2)) return hugging_face(text, rest);
  if (text.starts_with("http://") || text.starts_with("https://"))
    return Reference{.kind = Reference::kUrl, .repository = std::string(text)};
  if (const auto* entry = catalogue_entry(text); entry != nullptr) {
    ZRT_TRY(auto out, parse_reference(entry->source));
    out.alias = entry->name;
    return out;
  }
  if (is_path(text.substr(0, text.find(':')), 2, 2)) return hugging_face(text, text);
  if (!is_word(text.substr(0, text.find(':')))) return wrong(text);
  return fail(StatusCode::kNotFound, "[pull] the catalogue has no model \"{}\"{} ({})", text.substr(0, 200),
              did_you_mean(text, catalogue_names()), kForms);
}

}  // namespace zinc_rt::hub
