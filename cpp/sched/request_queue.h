// RequestQueue holds the requests of a scheduler that wait for a slot. There is one queue per tenant and class, in
// order of arrival. A preempted request returns to its old position, before all requests that arrived later.
// Thread rule: the step thread.
#pragma once

#include <array>
#include <deque>

#include "sched/request.h"

namespace zinc_rt::sched {

class RequestQueue {
 public:
  void push(Request& request, Micros now);  // inserts the request by its order of arrival
  void remove(Request& request, Micros now);
  std::uint32_t size() const { return size_; }

  // Calls visit(request) with the first request of each queue that is not empty.
  template <class Visit>
  void for_each_head(Visit&& visit) const {
    for (const auto& tenant : queues_)
      for (const auto& queue : tenant)
        if (queue.first != nullptr) visit(*queue.first);
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_head([&](Request& head) {
      for (Request *r = &head, *next; r != nullptr; r = next) {
        next = r->next;
        visit(*r);
      }
    });
  }

 private:
  struct Queue {
    Request* first = nullptr;
    Request* last = nullptr;
  };
  Queue& queue_of(const Request& request);
  std::deque<std::array<Queue, kQosCount>> queues_;  // index: the tenant's id
  std::uint32_t size_ = 0;
};

}  // namespace zinc_rt::sched
