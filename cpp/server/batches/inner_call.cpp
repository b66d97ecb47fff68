#include "server/batches/inner_call.h"

#include <utility>

#include "server/core.h"

namespace zinc_rt::server {

std::weak_ptr<InnerCall> InnerCall::start(ServerCore& core, const Router& router, std::shared_ptr<TenantEntry> tenant,
                                          HttpRequest request, Done done) {
  auto call = std::make_shared<InnerCall>(std::move(done));
  auto exchange = std::make_shared<Exchange>();
  exchange->id = new_id();
  exchange->connection = call;
  exchange->caller = {std::move(tenant), false};
  exchange->is_of_batch = true;
  const auto route = router.find(request, exchange->params);
  exchange->request = std::move(request);
  if (!route)
    call->respond(refusal(core, exchange->request.path, exchange->id, route.error()));
  else if ((*route)->access != Access::kKey)
    call->respond(refusal(core, exchange->request.path, exchange->id,
                          make_error(403, "[batch] this path is none that lines of batches may ask")));
  else
    post_to_handler(core, **route, exchange);
  return call;
}

InnerCall::~InnerCall() {
  if (!done_) return;
  HttpResponse nothing =
      error_response(is_cancelled_ ? make_error(499, "[batch] the line was cancelled")
                                   : make_error(500, "[batch] the request was dropped without an answer"));
  done_(std::move(nothing));
}

void InnerCall::cancel() {
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    left.swap(left_);
  }
  if (left) left();
}

void InnerCall::on_gone(std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return;
    if (!is_cancelled_) {
      left_ = std::move(left);
      return;
    }
  }
  left();
}

void InnerCall::add_header(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  answer_.headers.emplace_back(std::move(name), std::move(value));
}

void InnerCall::respond(HttpResponse response) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    response.headers.insert(response.headers.end(), answer_.headers.begin(), answer_.headers.end());
    done.swap(done_);
    left_ = nullptr;
  }
  if (done) done(std::move(response));
}

void InnerCall::start_stream(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  is_stream_ = true;
  head.headers.insert(head.headers.end(), answer_.headers.begin(), answer_.headers.end());
  answer_ = std::move(head);
}

bool InnerCall::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (is_stream_) answer_.body += piece;
  return is_stream_;
}

void InnerCall::finish(std::string_view last) {
  HttpResponse whole;
  {
    const std::lock_guard lock(mutex_);
    if (!is_stream_) return;
    whole = std::exchange(answer_, {});
  }
  whole.body += last;
  respond(std::move(whole));
}

void InnerCall::abort() {
  respond(error_response(make_error(500, "[batch] the answer was broken off")));
}

}  // namespace zinc_rt::server
