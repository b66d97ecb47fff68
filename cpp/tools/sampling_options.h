// The options of sampling: on the command line, in a conversation, and as a model's file recommends them.
// Thread rule: pure functions but for the options' own storage.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt::tools {

// Adds them, and --seed; `given` gets the names, such as "top_k", of those that the command line has.
// REQUIRES: request and given outlive app.
void add_sampling_options(CLI::App& app, Request& request, std::set<std::string>& given);

// What is sampled with where nobody says otherwise: what the model's file recommends (general.sampling.*), else, for
// conversations, temperature 0.7, min_p 0.05 and repetition_penalty 1.05, with which small models do not loop.
// Sets those of `request` that are not in `given`.
void set_chat_sampling(Request& request, const std::set<std::string>& given, const std::string& model_path);
void set_chat_sampling(Request& request, const std::set<std::string>& given);  // without a file

// "top_k 20" or "top-k 20". Errors: kInvalidArgument for names, with a near one, and for what is no number.
Status set_sampling(Request& request, std::string_view name, std::string_view value);
std::vector<std::string> sampling_names();
std::string sampling_text(const Request& request);  // those that are on, in one line

}  // namespace zinc_rt::tools
