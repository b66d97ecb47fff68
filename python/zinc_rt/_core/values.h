// Converts results to the package's dataclasses (zinc_rt/results.py, report.py), and quotas from and to
// zinc_rt/quota.py.
#pragma once

#include <pybind11/pybind11.h>

#include "zinc_rt/request.h"
#include "zinc_rt/tenant.h"
#include "zinc_rt/validate.h"

namespace zinc_rt::python {

pybind11::object to_python(const TokenLogprob& value);
pybind11::object to_python(const ToolCall& value);
pybind11::object to_python(const OutputPiece& value);
pybind11::object to_python(const Completion& value);
pybind11::object to_python(const StreamEvent& value);
pybind11::object to_python(const Difference& value);
pybind11::object to_python(const ValidateReport& value);
pybind11::object to_python(const TenantQuota& value);
TenantQuota to_quota(pybind11::handle value);  // REQUIRES: a zinc_rt.TenantQuota

template <class T>
struct ToPython {
  static constexpr auto name = pybind11::detail::const_name("object");
  static pybind11::handle cast(const T& value, pybind11::return_value_policy, pybind11::handle) {
    return to_python(value).release();
  }
};

}  // namespace zinc_rt::python

namespace pybind11::detail {

template <>
struct type_caster<zinc_rt::TokenLogprob> : zinc_rt::python::ToPython<zinc_rt::TokenLogprob> {};
template <>
struct type_caster<zinc_rt::ToolCall> : zinc_rt::python::ToPython<zinc_rt::ToolCall> {};
template <>
struct type_caster<zinc_rt::OutputPiece> : zinc_rt::python::ToPython<zinc_rt::OutputPiece> {};
template <>
struct type_caster<zinc_rt::Completion> : zinc_rt::python::ToPython<zinc_rt::Completion> {};
template <>
struct type_caster<zinc_rt::StreamEvent> : zinc_rt::python::ToPython<zinc_rt::StreamEvent> {};
template <>
struct type_caster<zinc_rt::Difference> : zinc_rt::python::ToPython<zinc_rt::Difference> {};
template <>
struct type_caster<zinc_rt::ValidateReport> : zinc_rt::python::ToPython<zinc_rt::ValidateReport> {};
template <>
struct type_caster<zinc_rt::TenantQuota> : zinc_rt::python::ToPython<zinc_rt::TenantQuota> {};

}  // namespace pybind11::detail
