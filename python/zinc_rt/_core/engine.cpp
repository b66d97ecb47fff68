#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <filesystem>

#include "arrays.h"
#include "base/utf8.h"
#include "bindings.h"
#include "interruptible.h"
#include "tools/cli.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::python {
namespace {

EngineOptions make_options(const std::string& tier, const py::kwargs& kwargs) {
  EngineOptions o;
  o.tier = tier;
  Keywords keywords(kwargs);
  for (const EngineOption& row : engine_options())
    std::visit([&](auto member) { keywords.take(row.name, o.*member); }, row.member);
  keywords.take("on_progress", o.on_progress.call);
  keywords.check_all_taken();
  return o;
}

Engine open(const std::filesystem::path& model, const std::string& tier, const py::kwargs& kwargs) {
  auto options = make_options(tier, kwargs);
  return without_gil([&]() -> Result<Engine> {
    const auto path = tools::model_path(model.string());  // `model` is a path, or a name in the models folder
    if (!path) return std::unexpected(path.error());
    if (const auto found = tools::find_draft_model(options); !found) return std::unexpected(found.error());
    return Engine::open(*path, options);
  });
}

void add_model(Engine& self, const std::filesystem::path& path, const std::string& name, const std::string& tier,
               const py::kwargs& kwargs) {
  auto options = make_options(tier, kwargs);
  without_gil([&]() -> Status {
    if (auto found = tools::find_draft_model(options); !found) return found;
    return self.add_model(path.string(), name, options);
  });
}

void close(Engine& self) {
  const WithoutGil release;
  self.close();
}

bool drain(Engine& self, std::optional<double> timeout_s) {
  for (double left = timeout_s.value_or(0) * 1e3;; left -= kSignalPollMs) {
    const double slice = timeout_s ? std::clamp(left, 0.0, kSignalPollMs) : kSignalPollMs;
    if (without_gil([&]() -> Result<bool> { return self.drain(slice); })) return true;
    if (timeout_s && left <= kSignalPollMs) return false;
    check_signals();
  }
}

py::array_t<float> logits(const Engine& self, const std::vector<std::int32_t>& ids, const std::string& which,
                          std::optional<std::uint32_t> chunk, const std::optional<std::string>& model) {
  if (which != "all" && which != "last")
    raise({StatusCode::kInvalidArgument, "[logits] which \"" + which + "\" is not one of all, last", 0});
  if (chunk && *chunk == 0) raise({StatusCode::kInvalidArgument, "[logits] chunk 0, at least 1 wanted", 0});
  const auto rows = which == "all" ? LogitsRows::kAll : LogitsRows::kLast;
  const auto name = model.value_or("");
  return to_array(interruptible([self, ids, rows, chunk, name](const StopAsked& is_stopped) {
                    return self.logits(ids, rows, chunk.value_or(0), name, is_stopped);
                  }),
                  self.vocab_size(name));
}

py::array_t<float> hidden(const Engine& self, const std::vector<std::int32_t>& ids, int layer,
                          const std::optional<std::string>& model) {
  const auto name = model.value_or("");
  return to_array(interruptible([self, ids, layer, name](const StopAsked& is_stopped) {
                    return self.hidden(ids, layer, name, is_stopped);
                  }),
                  self.model_dim(name));
}

std::string apply_template(const Engine& self, const py::object& messages, const py::object& tools,
                           bool add_generation_prompt, const std::optional<std::string>& model,
                           const py::kwargs& kwargs) {
  const auto messages_json = to_json("messages", messages),
             tools_json = tools.is_none() ? std::string() : to_json("tools", tools),
             extra = kwargs.empty() ? std::string() : to_json("variables", kwargs);
  return without_gil(
      [&] { return self.apply_template(messages_json, tools_json, add_generation_prompt, extra, model.value_or("")); });
}

std::string in_python(bool value, const EngineOption&) {
  return value ? "True" : "False";
}
std::string in_python(std::uint32_t value, const EngineOption&) {
  return std::to_string(value);
}
std::string in_python(const std::vector<std::uint32_t>& value, const EngineOption&) {
  return py::str(py::cast(value));
}
std::string in_python(const std::string& value, const EngineOption& row) {
  return value.empty() ? row.otherwise : value;
}

// Returns the text that help() shows about the engine's options: one line per option, with its default.
std::string describe_options() {
  const EngineOptions defaults;
  std::string text;
  for (const EngineOption& row : engine_options())
    text += std::string("  ") + row.name + " (" +
            std::visit([&](auto member) { return in_python(defaults.*member, row); }, row.member) + "): " + row.help +
            "\n";
  return text;
}

}  // namespace

void bind_engine(py::module_& m) {
  const py::arg_v model_arg = py::arg("model") = py::none();
  py::class_<Engine, Held<Engine>> engine(
      m, "Engine",
      ("Models, each on a tier, and the tenants that share them. Any thread; a thread of its own steps.\n\n"
       "Options of a model, each with what holds where it is not given:\n" +
       describe_options())
          .c_str());
  engine.def(py::init(&open), py::arg("model"), py::arg("tier") = "auto")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", unless_forked<Engine>(close))
      .def("close", unless_forked<Engine>(close), "Ends what runs and frees the models; later calls raise Unavailable.")
      .def_property_readonly("closed", &Engine::is_closed)
      .def("add_model", &add_model, py::arg("path"), py::arg("name"), py::arg("tier") = "auto",
           "Loads a further model, with slots, pages and options of its own.")
      .def(
          "remove_model",
          [](Engine& self, const std::string& name) { without_gil([&] { return self.remove_model(name); }); },
          py::arg("name"), "Takes no more requests for it, waits for those that there are, frees it.")
      .def_property_readonly("models", &Engine::models, "Names; the first is the default.")
      .def("drain", &drain, py::arg("timeout_s") = py::none(),
           "Takes no more requests and waits for those that there are; False: not all have ended in this time.")
      .def(
          "start_trace", [](Engine& self, std::uint32_t n_records) { unwrap(self.start_trace(n_records)); },
          py::arg("n_records") = 1u << 18, "Records what the step thread does until stop_trace() writes it.")
      .def(
          "stop_trace",
          [](Engine& self, const std::filesystem::path& path) {
            without_gil([&] { return self.stop_trace(path.string()); });
          },
          py::arg("path"), "Writes Chrome trace JSON, which ui.perfetto.dev shows.")
      .def_property_readonly("tier", &Engine::tier, "The hardware tier of the first model: t_cpu, t_cuda.")
      .def_property_readonly("arithmetic", &Engine::arithmetic,
                             "What is active: exact, or fast where it was asked for.")
      .def_property_readonly(
          "arithmetic_version", [](const Engine& self) { return self.arithmetic_version(); },
          "The version of the arithmetic contract: it is raised when the same model and text give other bits in exact.")
      .def_property_readonly("vocab_size", [](const Engine& self) { return self.vocab_size(); })
      .def_property_readonly("model_dim", [](const Engine& self) { return self.model_dim(); })
      .def(
          "model_card",
          [](const Engine& self, const std::optional<std::string>& model) {
            return from_json(to_json(unwrap(self.model_card(model.value_or("")))));
          },
          model_arg, "What the model is: a dict of its family, sizes, formats, and what it runs on.")
      .def(
          "memory_plan",
          [](const Engine& self, const std::optional<std::string>& model) {
            return from_json(to_json(unwrap(self.memory_plan(model.value_or("")))));
          },
          model_arg, "Every region of memory and its bytes: a dict.")
      .def(
          "stats",
          [](const Engine& self) {
            return from_json(to_json(without_gil([&]() -> Result<EngineStats> { return self.stats(); })));
          },
          "Steps, slots, pages, queues and the prefix cache, in all and by model: a dict.")
      .def(
          "tokenize",
          [](const Engine& self, const std::string& text, bool add_special, bool parse_special,
             const std::optional<std::string>& model) {
            return unwrap(self.tokenize(text, add_special, parse_special, model.value_or("")));
          },
          py::arg("text"), py::arg("add_special") = true, py::arg("parse_special") = true, model_arg,
          "Token ids of a text. parse_special: text such as <|end|> becomes the special token.")
      .def(
          "detokenize",
          [](const Engine& self, const std::vector<std::int32_t>& ids, bool skip_special,
             const std::optional<std::string>& model) {
            return replace_invalid_utf8(unwrap(self.detokenize(ids, skip_special, model.value_or(""))));
          },
          py::arg("ids"), py::arg("skip_special") = false, model_arg,
          "The text of token ids; bytes that are no UTF-8 become U+FFFD.")
      .def("apply_template", &apply_template, py::arg("messages"), py::arg("tools") = py::none(),
           py::arg("add_generation_prompt") = true, model_arg,
           "The prompt that the model sees for a conversation; further keywords are variables of the template.")
      .def("logits", &logits, py::arg("token_ids"), py::arg("which") = "all", py::arg("chunk") = py::none(), model_arg,
           "Logits after each token: float32 [n, vocab_size].")
      .def("hidden", &hidden, py::arg("token_ids"), py::arg("layer"), model_arg,
           "The residual stream after a layer (-1: the embeddings): float32 [n, model_dim].")
      .def(
          "tenant",
          [](Engine& self, const std::string& name, const py::object& object) {
            const auto quota = object.is_none() ? std::nullopt : std::optional(to_quota(object));
            return without_gil([&] { return self.tenant(name, quota); });
          },
          py::arg("name"), py::arg("quota") = py::none(),
          "The tenant of this name, made on the first call; a quota replaces the one that it had.");
  forbid_pickle(engine);
}

}  // namespace zinc_rt::python
