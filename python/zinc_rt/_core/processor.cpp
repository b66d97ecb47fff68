// Makes logits processors of Python functions. They are called on the step thread.
#include <pybind11/numpy.h>

#include <cstring>

#include "bindings.h"
#include "calls.h"

namespace zinc_rt::python {
namespace {

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

thread_local bool is_inside = false;
struct Inside {
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
};

std::unexpected<Error> refusal(const std::string& words) {
  return std::unexpected(Error{StatusCode::kInvalidArgument, "[logits_processor] " + words, 0});
}

std::string text(const py::handle& value) {
  return py::str(value).cast<std::string>();
}

// Calls a function with copies of the token ids and logits, which it may keep. It changes its logits in place, or
// returns others.
Status call(const py::handle& function, std::span<const std::int32_t> token_ids, std::span<float> logits) {
  const auto n = static_cast<py::ssize_t>(logits.size());
  const py::array_t<std::int32_t> ids(static_cast<py::ssize_t>(token_ids.size()), token_ids.data());
  const Floats given(n, logits.data());
  const py::object returned = function(ids, given);
  const Floats made = returned.is_none() ? given : Floats::ensure(returned);
  const auto wanted = "; an array of shape (" + std::to_string(n) + ",) or None is wanted";
  if (!made) return refusal("it returned " + text(py::type::of(returned).attr("__name__")) + wanted);
  if (made.ndim() != 1 || made.shape(0) != n)
    return refusal("it returned an array of shape " + text(made.attr("shape")) + wanted);
  std::memcpy(logits.data(), made.data(), logits.size_bytes());
  return {};
}

Status call_all(const py::list& functions, std::span<const std::int32_t> token_ids, std::span<float> logits) {
  const Inside inside;
  try {
    for (const auto& function : functions)
      if (auto status = call(function, token_ids, logits); !status) return status;
    return {};
  } catch (const py::error_already_set& error) {
    return refusal("it raised " + text(error.type().attr("__name__")) + ": " + text(error.value()));
  }
}

}  // namespace

bool is_processing() {
  return is_inside;
}

void raise_processing() {
  raise({StatusCode::kInvalidArgument,
         "[logits_processor] it called the engine, which waits for the step that the processor is a part of", 0});
}

LogitsProcessor python_processor(const py::object& function_or_list) {
  const bool is_one = PyCallable_Check(function_or_list.ptr()) != 0;
  py::list functions = is_one ? py::list() : py::list(function_or_list);
  if (is_one) functions.append(function_or_list);
  if (functions.empty()) return {};
  const std::shared_ptr<py::list> shared(new py::list(std::move(functions)),
                                         [](py::list* list) { in_python([&] { delete list; }); });
  return [shared](std::span<const std::int32_t> token_ids, std::span<float> logits) -> Status {
    Status status = std::unexpected(Error{StatusCode::kUnavailable, "[logits_processor] the interpreter has ended", 0});
    in_python([&] { status = call_all(*shared, token_ids, logits); });
    return status;
  };
}

}  // namespace zinc_rt::python
