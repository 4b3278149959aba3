// The line: on it the daemon speaks first, and a thread of ours does what it asks; else that thread sleeps. Also the page on
// which the process shows what it holds idle.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "allocator/protocol/messages.hpp"

namespace vramd::shim {

// Whether a descriptor is still the file that it was: the program may have closed it and got the number for one of its own.
class DescriptorIdentity {
 public:
  // False when the descriptor can't be asked.
  bool take(int fd);
  bool still(int fd) const;

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

class Line {
 public:
  // Called in the line's thread, with no lock held.
  struct Work {
    void (*recall)(void* owner, const protocol::Recall& recall) = nullptr;
    void (*tick)(void* owner) = nullptr;  // every kTickMillis at the most, while nothing else is to do
    void* owner = nullptr;
    // pthread_create(), which processes on older C libraries may lack. Null: there will be no line.
    int (*create_thread)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
  };
  static constexpr int kTickMillis = 5000;

  // Before the first open().
  void set_work(const Work& work) { work_ = work; }
  bool possible() const { return work_.create_thread != nullptr; }

  // Takes over both descriptors of a hello and starts the thread. False leaves the process without a line.
  bool open(int socket, int page);

  // Shows how many bytes of a device (the daemon's index) are idle. Any thread; one at a time for each device.
  void show_idle(std::uint32_t device, std::uint64_t bytes);
  // Forgets the page of a daemon that is gone.
  void close() { __atomic_store_n(&page_, nullptr, __ATOMIC_RELEASE); }

 private:
  struct Thread;
  static void* run(void* thread);
  static void serve(const Thread& thread);

  Work work_;
  protocol::SessionPage* page_ = nullptr;  // never unmapped: somebody may be writing
};

}  // namespace vramd::shim
