#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "bindings.h"
#include "tokenizer/utf8.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::python {
namespace {

// A [rows, width] array that takes over the vector.
py::array_t<float> to_array(std::vector<float>&& values, std::size_t width) {
  auto* owned = new std::vector<float>(std::move(values));
  const py::capsule owner(owned, [](void* p) { delete static_cast<std::vector<float>*>(p); });
  return py::array_t<float>({owned->size() / width, width}, owned->data(), owner);
}

template <class Call>
auto without_gil(Call&& call) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return call();
  }();
  return unwrap(std::move(result));
}

Engine open(const std::filesystem::path& model, const std::string& tier, std::uint32_t max_slots,
            std::optional<std::uint32_t> kv_pages, std::optional<std::uint32_t> max_context,
            std::optional<std::string> kv_dtype, std::optional<int> threads, std::optional<std::string> arithmetic,
            const std::string& activations, std::optional<std::uint32_t> chunk_cap, std::optional<std::string> fusion,
            bool mmap, std::function<void(std::uint64_t, std::uint64_t)> on_progress) {
  EngineOptions o;
  o.tier = tier;
  o.max_slots = max_slots;
  o.kv_pages = kv_pages.value_or(0);
  o.max_context = max_context.value_or(0);
  o.kv_dtype = kv_dtype.value_or("");
  o.threads = threads.value_or(0);
  o.arithmetic = arithmetic.value_or("");
  o.activations = activations;
  o.chunk_cap = chunk_cap.value_or(0);
  o.fusion = fusion.value_or("");
  o.mmap = mmap;
  o.on_progress = std::move(on_progress);
  return without_gil([&] { return Engine::open(model.string(), o); });
}

py::array_t<float> logits(const Engine& self, const std::vector<std::int32_t>& ids, const std::string& which,
                          std::optional<std::uint32_t> chunk) {
  if (which != "all" && which != "last")
    raise({StatusCode::kInvalidArgument, "[logits] which \"" + which + "\" is not one of all, last", 0});
  if (chunk && *chunk == 0) raise({StatusCode::kInvalidArgument, "[logits] chunk 0, at least 1 wanted", 0});
  const auto rows = which == "all" ? LogitsRows::kAll : LogitsRows::kLast;
  return to_array(without_gil([&] { return self.logits(ids, rows, chunk.value_or(0)); }), self.vocab_size());
}

py::array_t<float> hidden(const Engine& self, const std::vector<std::int32_t>& ids, int layer) {
  return to_array(without_gil([&] { return self.hidden(ids, layer); }), self.model_dim());
}

std::string apply_template(const Engine& self, const py::object& messages, const py::object& tools,
                           bool add_generation_prompt, const py::kwargs& kwargs) {
  const auto messages_json = to_json(messages), tools_json = tools.is_none() ? std::string() : to_json(tools),
             extra = kwargs.empty() ? std::string() : to_json(kwargs);
  return without_gil([&] { return self.apply_template(messages_json, tools_json, add_generation_prompt, extra); });
}

}  // namespace

void bind_engine(py::module_& m) {
  py::class_<Engine> engine(m, "Engine", "One model on one tier. Any thread; steps of the model run one at a time.");
  engine
      .def(py::init(&open), py::arg("model"), py::arg("tier") = "auto", py::arg("max_slots") = 16,
           py::arg("kv_pages") = py::none(), py::arg("max_context") = py::none(), py::arg("kv_dtype") = py::none(),
           py::arg("threads") = py::none(), py::arg("arithmetic") = py::none(), py::arg("activations") = "int8",
           py::arg("chunk_cap") = py::none(), py::arg("fusion") = py::none(), py::arg("mmap") = true,
           py::arg("on_progress") = nullptr)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__",
           [](Engine& self, const py::args&) {
             const py::gil_scoped_release release;
             self.close();
           })
      .def("close", &Engine::close, py::call_guard<py::gil_scoped_release>(),
           "Frees the model; later calls raise Unavailable.")
      .def_property_readonly("closed", &Engine::is_closed)
      .def_property_readonly("tier", &Engine::tier)
      .def_property_readonly("arithmetic", &Engine::arithmetic)
      .def_property_readonly("vocab_size", &Engine::vocab_size)
      .def_property_readonly("model_dim", &Engine::model_dim)
      .def("model_card", [](const Engine& self) { return from_json(self.model_card()); })
      .def("memory_plan", [](const Engine& self) { return from_json(self.memory_plan()); })
      .def("stats", [](const Engine& self) { return from_json(self.stats()); })
      .def(
          "tokenize",
          [](const Engine& self, const std::string& text, bool add_special, bool parse_special) {
            return unwrap(self.tokenize(text, add_special, parse_special));
          },
          py::arg("text"), py::arg("add_special") = true, py::arg("parse_special") = true)
      .def(
          "detokenize",
          [](const Engine& self, const std::vector<std::int32_t>& ids, bool skip_special) {
            return replace_invalid_utf8(unwrap(self.detokenize(ids, skip_special)));
          },
          py::arg("ids"), py::arg("skip_special") = false)
      .def("apply_template", &apply_template, py::arg("messages"), py::arg("tools") = py::none(),
           py::arg("add_generation_prompt") = true)
      .def("logits", &logits, py::arg("token_ids"), py::arg("which") = "all", py::arg("chunk") = py::none(),
           "Logits after each token: float32 [n, vocab_size].")
      .def("hidden", &hidden, py::arg("token_ids"), py::arg("layer"),
           "The residual stream after a layer (-1: the embeddings): float32 [n, model_dim].")
      .def(
          "tenant",
          [](Engine& self, const std::string& name, const std::optional<TenantQuota>& quota) {
            return unwrap(self.tenant(name, quota));
          },
          py::arg("name"), py::arg("quota") = py::none());
  forbid_pickle(engine);
}

}  // namespace zinc_rt::python
