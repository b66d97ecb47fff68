// Binds sessions and running generations. A call that waits releases the GIL and checks for Ctrl-C every kSignalPollMs.
#include "zinc_rt/session.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <variant>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "interruptible.h"

namespace zinc_rt::python {
namespace {

struct Taken {
  std::optional<StreamEvent> event;
  bool is_there = true;  // false: the timeout passed before an event came
};

Result<Taken> take(Stream& stream, double timeout_ms) {
  Taken taken;
  auto event = stream.next_within(timeout_ms, taken.is_there);
  if (!event) return std::unexpected(event.error());
  taken.event = *std::move(event);
  return taken;
}

Stream open_stream(const Session& self, const py::object& prompt, const py::object& messages,
                   const py::object& token_ids, const py::kwargs& kwargs) {
  const Request request = make_request(prompt, messages, token_ids, kwargs);
  return without_gil([&] { return self.stream(request); });
}

StreamEvent next_event(Stream& stream) {
  for (;;) {
    auto taken = without_gil([&] { return take(stream, kSignalPollMs); });
    if (taken.is_there && !taken.event) throw py::stop_iteration();
    if (taken.is_there) return *std::move(taken.event);
    check_signals();
  }
}

// Waits for the end of a generation and returns its completion. Its events are dropped.
Completion finish(Stream& stream) {
  // Takes events for kSignalPollMs with the GIL released. Returns true if the events have ended.
  const auto drain = [&]() -> Result<bool> {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double, std::milli>(kSignalPollMs);
    for (;;) {
      const auto taken = take(stream, kSignalPollMs);
      if (!taken) return std::unexpected(taken.error());
      if (taken->is_there && !taken->event) return true;
      if (Clock::now() >= until) return false;
    }
  };
  while (!without_gil(drain)) check_signals();
  return stream.completion();
}

Completion generate(const Session& self, const py::object& prompt, const py::object& messages,
                    const py::object& token_ids, const py::kwargs& kwargs) {
  auto stream = open_stream(self, prompt, messages, token_ids, kwargs);
  return finish(stream);
}

// Returns a callback that calls a Python function. The function object is released with the GIL held, whichever thread
// drops the last reference.
std::function<void(const StreamEvent&)> python_callback(py::function function) {
  const std::shared_ptr<py::function> shared(new py::function(std::move(function)),
                                             [](py::function* f) { in_python([&] { delete f; }); });
  return [shared](const StreamEvent& event) {
    in_python([&] {
      try {
        (*shared)(event);
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable(*shared);  // sys.unraisablehook shows it
        throw std::runtime_error("the callback raised");
      }
    });
  };
}

RequestHandle submit(const Session& self, const py::object& prompt, const py::object& messages,
                     const py::object& token_ids, py::function on_event, const py::kwargs& kwargs) {
  const Request request = make_request(prompt, messages, token_ids, kwargs);
  auto callback = python_callback(std::move(on_event));
  const std::size_t capacity = request.stream_capacity > 0 ? request.stream_capacity : 256;
  return without_gil([&] { return self.submit(request, make_callback_sink(std::move(callback), capacity)); });
}

using EmbeddedText = std::variant<std::string, std::vector<std::int32_t>>;

// At most this many texts of a call are in the engine at once. They are enough for full steps, and leave room in the
// queue for others.
constexpr std::size_t kMostEmbedding = 64;

// Submits a text. If the queue is full, returns nullopt if may_wait is true, and raises an exception otherwise.
std::optional<Stream> begin_embedding(const Session& self, const Request& request, bool may_wait) {
  return without_gil([&]() -> Result<std::optional<Stream>> {
    auto stream = self.stream(request);
    if (stream) return std::optional(std::move(*stream));
    if (may_wait && stream.error().code == StatusCode::kExhausted) return std::nullopt;
    return std::unexpected(std::move(stream.error()));
  });
}

// Runs the requests make(0) to make(n - 1), several at once. Passes their completions to `take`, in order.
void embed_all(const Session& self, std::size_t n, const std::function<Request(std::size_t)>& make,
               const std::function<void(const Completion&)>& take) {
  std::deque<Stream> streams;
  for (std::size_t next = 0; next < n || !streams.empty();) {
    check_signals();
    if (next < n && streams.size() < kMostEmbedding)
      if (auto stream = begin_embedding(self, make(next), !streams.empty())) {
        streams.push_back(*std::move(stream));
        ++next;
        continue;
      }
    const Completion done = finish(streams.front());
    streams.pop_front();
    if (done.finish_reason != "stop")
      raise({StatusCode::kCancelled, "[embed] a text ended as " + done.finish_reason, 0});
    take(done);
  }
}

Request embedding_request(const std::optional<std::string>& model) {
  Request request;
  request.embed = true;
  request.max_tokens = 0;
  request.model = model.value_or("");
  return request;
}

py::array_t<float> embed(const Session& self, const std::vector<EmbeddedText>& texts,
                         std::optional<std::uint32_t> dimensions, const std::optional<std::string>& model) {
  if (texts.empty()) raise({StatusCode::kInvalidArgument, "[embed] texts is an empty list, at least 1 text wanted", 0});
  if (dimensions && *dimensions == 0)
    raise({StatusCode::kInvalidArgument, "[embed] dimensions is 0, at least 1 wanted", 0});
  Request request = embedding_request(model);
  request.dimensions = dimensions.value_or(0);
  std::vector<float> rows;
  embed_all(
      self, texts.size(),
      [&](std::size_t i) {
        Request one = request;
        if (const auto* words = std::get_if<std::string>(&texts[i]))
          one.prompt = *words;
        else
          one.token_ids = std::get<std::vector<std::int32_t>>(texts[i]);
        return one;
      },
      [&](const Completion& done) { rows.insert(rows.end(), done.embedding.begin(), done.embedding.end()); });
  const std::size_t width = rows.size() / texts.size();
  return to_array(std::move(rows), width);
}

std::vector<double> rerank(const Session& self, const std::string& query, const std::vector<std::string>& documents,
                           const std::optional<std::string>& model) {
  Request request = embedding_request(model);
  request.prompt = query;
  std::vector<double> scores;
  embed_all(
      self, documents.size(),
      [&](std::size_t i) {
        request.text_pair = documents[i];
        return request;
      },
      [&](const Completion& done) { scores.push_back(done.score.value_or(0)); });
  return scores;
}

std::uint32_t save(const Session& self, const std::filesystem::path& path, const py::object& prompt,
                   const py::object& messages, const py::object& token_ids, const py::kwargs& kwargs) {
  Request request = make_request(prompt, messages, token_ids, kwargs);
  return interruptible([self, request = std::move(request), path](const StopAsked& is_stopped) mutable {
    return self.save_prefix(std::move(request), path.string(), is_stopped);
  });
}

std::pair<std::uint32_t, std::uint32_t> cached(const Session& self, const py::object& prompt,
                                               const py::object& messages, const py::object& token_ids,
                                               const py::kwargs& kwargs) {
  Request request = make_request(prompt, messages, token_ids, kwargs);
  const auto prefix = without_gil([&] { return self.cached_prefix(std::move(request)); });
  return {prefix.n_tokens, prefix.cached_tokens};
}

bool wait(const RequestHandle& self, std::optional<double> timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (;;) {
    const std::chrono::duration<double, std::milli> passed = Clock::now() - begin;
    const double left = timeout_s ? *timeout_s * 1e3 - passed.count() : kSignalPollMs;
    const bool ended = without_gil([&]() -> Result<bool> { return self.wait_for(std::min(left, kSignalPollMs)); });
    if (ended) {
      without_gil([&] { return self.wait(); });
      return true;
    }
    check_signals();
    if (timeout_s && left <= kSignalPollMs) return false;
  }
}

}  // namespace

void bind_session(py::module_& m) {
  const py::call_guard<WithoutGil> no_gil;
  py::class_<Stream, Held<Stream>> stream(
      m, "Stream", "A generation under way: iterate for its events. One thread at a time; cancel() from any.");
  stream.def("__iter__", [](py::object self) { return self; })
      .def("__next__", &next_event)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", unless_forked<Stream>([](Stream& self) { self.cancel(); }))
      .def("cancel", &Stream::cancel, no_gil, "Ends the generation within a step; finish_reason becomes cancelled.")
      .def(
          "fileno", &Stream::readable_fd,
          "A descriptor that is readable while next() would not block; the stream's own. -1: the system has none left.")
      .def(
          "_poll",
          [](Stream& self, double timeout_ms) {
            auto taken = without_gil([&] { return take(self, timeout_ms); });
            return std::pair(taken.is_there, std::move(taken.event));
          },
          py::arg("timeout_ms") = 0.0, "Whether next() would not block, and what it gives; None: the end.")
      .def("finish", &finish, "Waits for the end, without an event for each token, and gives the whole Completion.")
      .def_property_readonly("completion", &Stream::completion, "What was generated so far, or in all.");
  forbid_pickle(stream);

  py::class_<RequestHandle, Held<RequestHandle>> handle(m, "RequestHandle",
                                                        "A request whose events go to a callback. Any thread.");
  handle.def("cancel", &RequestHandle::cancel, no_gil, "Ends it within a step; finish_reason becomes cancelled.")
      .def_property_readonly("is_done", &RequestHandle::is_done)
      .def("wait", &wait, py::arg("timeout_s") = py::none(),
           "Until it has ended and the callback has had all events; False: not in this time. Raises what ended it, if "
           "that was not the request itself.")
      .def_property_readonly("completion", &RequestHandle::completion, "What was generated so far, or in all.");
  forbid_pickle(handle);

  py::class_<Session, Held<Session>> session(m, "Session", "A conversation of one tenant. Any thread.");
  session
      .def("generate", &generate, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(),
           ("Generates and gives the whole Completion.\n\n"
            "How to generate, each with what holds where it is not given:\n" +
            describe_request_fields())
               .c_str())
      .def("stream", &open_stream, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(), "Generates as an iterator, plain or async, of StreamEvent.")
      .def("submit", &submit, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(), py::kw_only(), py::arg("on_event"),
           "Generates and calls on_event for each StreamEvent on a thread of the request's own; one that raises ends "
           "the request as sink_failed.")
      .def("rerank", &rerank, py::arg("query"), py::arg("documents"), py::arg("model") = py::none(),
           "How well documents answer a query, 0 to 1, by a model with pooling rank: a list in their order.")
      .def("embed", &embed, py::arg("texts"), py::arg("dimensions") = py::none(), py::arg("model") = py::none(),
           "The embeddings of texts or lists of token ids, by a model that was opened with a pooling: float32 [n, "
           "dimensions], each of length 1. dimensions: its first so many; None: all.")
      .def("cached", &cached, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(),
           "The number of the prompt's tokens, and of those whose KV the prefix cache holds now; nothing is computed.")
      .def("save", &save, py::arg("path"), py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(),
           "Computes the KV of a prompt and writes it to a file, in whole pages of 16 tokens; gives their number.")
      .def(
          "load",
          [](const Session& self, const std::filesystem::path& path, const std::optional<std::string>& model,
             const std::optional<std::string>& cache_salt) {
            return without_gil(
                [&] { return self.load_prefix(path.string(), model.value_or(""), cache_salt.value_or("")); });
          },
          py::arg("path"), py::kw_only(), py::arg("model") = py::none(), py::arg("cache_salt") = py::none(),
          "Puts a saved prefix into the tenant's prefix cache; gives its number of tokens. A file of another model, "
          "tier, "
          "kv_dtype or arithmetic is refused by name.")
      .def_property_readonly("tenant_name", &Session::tenant_name, "Whose work it is.")
      .def_property_readonly(
          "system",
          [](const Session& self) { return self.system().empty() ? std::nullopt : std::optional(self.system()); },
          "The message that is put before those of a request which has none of role system.");
  forbid_pickle(session);

  m.def(
      "_end_calls",
      [] {
        while (!without_gil([]() -> Result<bool> { return end_calls(kSignalPollMs); })) check_signals();
        end_waits();
      },
      "The interpreter ends: callbacks under way are waited for, later ones are not made, waiting threads stay away.");
}

}  // namespace zinc_rt::python
