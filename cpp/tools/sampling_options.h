// Sets sampling options from the command line, from commands in a conversation, and from a model file's
// recommendations.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Adds the sampling options and --seed to a command. The names of the options that the command line sets, such as
// "top_k", are added to `given`. REQUIRES: request and given outlive app.
void add_sampling_options(CLI::App& app, Request& request, std::set<std::string>& given);

// Sets the fields of `request` that are not in `given` to the model file's recommendations (general.sampling.*). If the
// file has none, conversations use temperature 0.7, min_p 0.05 and repetition_penalty 1.05, with which small models do
// not loop.
void set_chat_sampling(Request& request, const std::set<std::string>& given, const std::string& model_path);
// Sets the defaults for a chat with a server, that is, without a model file, unless `given` has the option.
void set_chat_sampling(Request& request, const std::set<std::string>& given);

// Sets one option, such as "top_k" or "top-k" to "20". Errors: kInvalidArgument for an unknown name (the message
// suggests a similar one) and for a value that is not a number.
Status set_sampling(Request& request, std::string_view name, std::string_view value);
std::vector<std::string> sampling_names();
std::string sampling_text(const Request& request);  // returns the options in effect, in one line

}  // namespace zinc_rt::tools
