// InnerCall is a request that the server makes to itself without a socket: a line of a batch. It uses the same routes,
// quotas, ledger and metrics as clients' requests, but is not in the access log.
// Thread rule: any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "server/router.h"

namespace zinc_rt::server {

struct ServerCore;

class InnerCall final : public Connection {
 public:
  // Receives the whole answer, on any thread. It must not block.
  using Done = std::function<void(HttpResponse)>;

  // Calls a path on behalf of a tenant. `done` is called exactly once. If the handler does not answer, the answer's
  // status is 499 after cancel(), otherwise 500. REQUIRES: core and router outlive the call.
  static std::weak_ptr<InnerCall> start(ServerCore& core, const Router& router, std::shared_ptr<TenantEntry> tenant,
                                        HttpRequest request, Done done);

  explicit InnerCall(Done done) : done_(std::move(done)) {}
  ~InnerCall() override;
  // Acts as if the client disconnected, so that the request's work ends soon.
  void cancel();

  void add_header(std::string name, std::string value) override;
  void note(std::string, std::string) override {}
  void respond(HttpResponse response) override;
  void start_stream(HttpResponse head) override;
  bool write(std::string_view piece) override;
  void finish(std::string_view last) override;
  void abort() override;
  void on_gone(std::function<void()> left) override;

 private:
  std::mutex mutex_;
  Done done_;  // empty after it was called
  HttpResponse answer_;
  bool is_stream_ = false, is_cancelled_ = false;
  std::function<void()> left_;
};

}  // namespace zinc_rt::server
