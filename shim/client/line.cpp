#include "shim/client/line.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/protocol/socket.hpp"

namespace vramd::shim {
namespace {

// libc exports fstat() only since 2.33; older containers must be able to load us. Same structure on 64-bit Linux.
bool file_status(int fd, struct stat& status) { return ::syscall(SYS_fstat, fd, &status) == 0; }

// The program's handlers run on the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool DescriptorIdentity::take(int fd) {
  struct stat status {};
  if (!file_status(fd, status)) return false;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

bool DescriptorIdentity::still(int fd) const {
  struct stat status {};
  return file_status(fd, status) && status.st_dev == device_ && status.st_ino == inode_;
}

struct Line::Thread {
  Work work;
  int socket;
  DescriptorIdentity identity;
};

bool Line::open(int socket, int page) {
  void* shown = ::mmap(nullptr, sizeof(protocol::SessionPage), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
  protocol::close_descriptor(page);
  // The thread's own, freed by it.
  void* place = ::mmap(nullptr, sizeof(Thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool fine = shown != MAP_FAILED && place != MAP_FAILED;
  if (fine) {
    auto* thread = static_cast<Thread*>(place);
    *thread = {work_, socket, {}};
    fine = thread->identity.take(socket);
    pthread_attr_t attributes;
    if (fine && pthread_attr_init(&attributes) == 0) {
      (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      const SignalsBlocked inherited;
      pthread_t created;
      fine = work_.create_thread(&created, &attributes, &run, thread) == 0;
    } else {
      fine = false;
    }
  }
  if (fine) {
    __atomic_store_n(&page_, static_cast<protocol::SessionPage*>(shown), __ATOMIC_RELEASE);
    return true;
  }
  protocol::close_descriptor(socket);
  if (place != MAP_FAILED) ::munmap(place, sizeof(Thread));
  if (shown != MAP_FAILED) ::munmap(shown, sizeof(protocol::SessionPage));
  return false;
}

void Line::show_idle(std::uint32_t device, std::uint64_t bytes) {
  protocol::SessionPage* page = __atomic_load_n(&page_, __ATOMIC_ACQUIRE);
  if (page != nullptr && device < protocol::kMaxDevices) __atomic_store_n(&page->idle_bytes[device], bytes, __ATOMIC_RELAXED);
}

void* Line::run(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  ::syscall(SYS_prctl, 15 /* PR_SET_NAME */, "vramd", 0, 0, 0);
  serve(*thread);
  if (thread->identity.still(thread->socket)) protocol::close_descriptor(thread->socket);
  ::munmap(thread, sizeof(Thread));
  return nullptr;
}

void Line::serve(const Thread& thread) {
  for (;;) {
    pollfd item{thread.socket, POLLIN, 0};
    const long ready = ::syscall(SYS_poll, &item, 1, kTickMillis);
    if (ready < 0 && errno != EINTR) return;
    if (!thread.identity.still(thread.socket)) return;
    if (ready <= 0) {
      thread.work.tick(thread.work.owner);
      continue;
    }
    alignas(8) unsigned char buffer[protocol::kMaxMessage];
    auto packet = protocol::receive_packet(thread.socket, buffer, sizeof buffer);
    if (!packet) {
      if (packet.error().code == ErrorCode::timeout) continue;
      return;
    }
    protocol::close_all(*packet);
    if (packet->size == 0) return;
    protocol::Recall recall;
    if (protocol::decode(buffer, packet->size, recall))
      thread.work.recall(thread.work.owner, recall);  // others come from later versions
  }
}

}  // namespace vramd::shim
