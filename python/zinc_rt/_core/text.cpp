#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "bindings.h"
#include "jinja/chat_template.h"
#include "model/weights.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt::python {
namespace {

Tokenizer open_tokenizer(const std::filesystem::path& path) {
  return unwrap(Tokenizer::from_metadata(unwrap(Weights::open_metadata(path.string()))));
}

std::string render(const ChatTemplate& self, const py::kwargs& kwargs) {
  const auto context = nlohmann::ordered_json::parse(to_json("variables", kwargs), nullptr, false);
  if (context.is_discarded())
    raise({StatusCode::kInvalidArgument, "[chat_template] the arguments do not make valid JSON (lone surrogates?)", 0});
  Result<std::string> text;
  {
    const WithoutGil release;
    text = self.render(context);
  }
  return unwrap(std::move(text));
}

}  // namespace

void bind_text(py::module_& m) {
  py::class_<Tokenizer>(m, "Tokenizer", "The tokenizer of a GGUF file or an MLC folder; needs no tensors. Any thread.")
      .def(py::init(&open_tokenizer), py::arg("path"))
      .def(
          "encode",
          [](const Tokenizer& self, const std::string& text, bool add_special, bool parse_special) {
            return unwrap(self.encode(text, add_special, parse_special));
          },
          py::arg("text"), py::arg("add_special") = true, py::arg("parse_special") = true, "Token ids of a text.")
      .def(
          "decode",
          [](const Tokenizer& self, const std::vector<std::int32_t>& ids, bool skip_special) {
            return replace_invalid_utf8(unwrap(self.decode(ids, skip_special)));
          },
          py::arg("ids"), py::arg("skip_special") = false,
          "The text of token ids; bytes that are no UTF-8 become U+FFFD.")
      .def_property_readonly("n_vocab", &Tokenizer::n_vocab)
      .def_property_readonly("bos_id", &Tokenizer::bos_id)
      .def_property_readonly("eos_id", &Tokenizer::eos_id)
      .def_property_readonly("end_of_generation_ids", &Tokenizer::end_of_generation_ids);

  py::class_<ChatTemplate>(m, "ChatTemplate", "A chat template, rendered by the engine's own Jinja subset. Any thread.")
      .def(py::init([](std::string source) { return unwrap(ChatTemplate::parse(std::move(source))); }),
           py::arg("source"))
      .def("render", &render,
           "Renders with the keyword arguments as variables: messages=[...], add_generation_prompt=True, tools=[...], "
           "...");
}

}  // namespace zinc_rt::python
