// A library to be preloaded (LD_PRELOAD): the program's disk fails at a call of choice. Counts the
// calls that change regular files or folders: open with O_CREAT, write, pwrite, fallocate,
// ftruncate, rename, mkdir, fsync and fdatasync. Terminals, pipes, sockets, and the standard
// streams do not count.
//
//   FAULT_AT=N       the call that fails, from 1 on; 0, or unset: none
//   FAULT_MODE=      full: it and all later ones that need space fail with ENOSPC
//                    short: it writes half of its bytes, and goes on as full
//                    error: it alone fails with EIO
//                    hang: it, and all later ones, do not return
//                    kill: the process is killed, as by kill -9, before it
//   FAULT_LOG=FILE   at the end of the process: a line for each call that counted
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

enum class Need { kSpace, kNone };
enum class Fate { kGoesOn, kFails, kHalf };

template <typename Function>
Function* Original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

const char* Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::atomic<int> calls = 0;

void Log(int number, const char* call) {
  static const std::string path = Setting("FAULT_LOG");
  if (path.empty()) return;
  static auto* const open_file = Original<int(const char*, int, ...)>("open");
  static auto* const write_file = Original<ssize_t(int, const void*, size_t)>("write");
  static const int file = open_file(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  char line[64];
  const int size = std::snprintf(line, sizeof line, "%d %s\n", number, call);
  if (file >= 0 && write_file(file, line, static_cast<size_t>(size)) < 0) return;
}

// Of the next call; sets errno where it fails.
Fate Next(const char* call, Need need) {
  static const int fault = std::atoi(Setting("FAULT_AT"));
  static const std::string mode = Setting("FAULT_MODE");
  const int number = ++calls;
  Log(number, call);
  if (fault == 0 || number < fault) return Fate::kGoesOn;
  if (mode == "kill") kill(getpid(), SIGKILL);
  if (mode == "hang") {
    while (true) pause();
  }
  if (mode == "error") {
    errno = EIO;
    return number == fault ? Fate::kFails : Fate::kGoesOn;
  }
  if (need != Need::kSpace) return Fate::kGoesOn;
  errno = ENOSPC;
  return mode == "short" && number == fault ? Fate::kHalf : Fate::kFails;
}

bool Counts(int file) {
  if (file <= STDERR_FILENO) return false;
  struct stat info;
  return fstat(file, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

// The disk has no part of what is below /dev and /proc.
bool Counts(const char* path) {
  return std::strncmp(path, "/dev/", 5) != 0 && std::strncmp(path, "/proc/", 6) != 0;
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  auto* const original = Original<int(const char*, int, ...)>(name);
  if ((flags & O_CREAT) != 0 && Counts(path) && Next("open", Need::kSpace) != Fate::kGoesOn) {
    return -1;
  }
  return original(path, flags, mode);
}

}  // namespace

// They take the place of the C library's, whatever the build hides.
#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open("open64", path, flags, mode);
}

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const original = Original<ssize_t(int, const void*, size_t)>("write");
  const Fate fate = Counts(file) ? Next("write", Need::kSpace) : Fate::kGoesOn;
  if (fate == Fate::kFails) return -1;
  return original(file, bytes, fate == Fate::kHalf ? std::max<size_t>(size / 2, 1) : size);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  static auto* const original = Original<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  const Fate fate = Counts(file) ? Next("pwrite", Need::kSpace) : Fate::kGoesOn;
  if (fate == Fate::kFails) return -1;
  return original(file, bytes, fate == Fate::kHalf ? std::max<size_t>(size / 2, 1) : size, at);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  return pwrite64(file, bytes, size, at);
}

int fallocate64(int file, int mode, off64_t at, off64_t size) {
  static auto* const original = Original<int(int, int, off64_t, off64_t)>("fallocate64");
  if (Next("fallocate", Need::kSpace) != Fate::kGoesOn) return -1;
  return original(file, mode, at, size);
}
int fallocate(int file, int mode, off_t at, off_t size) {
  return fallocate64(file, mode, at, size);
}

int ftruncate64(int file, off64_t size) noexcept {
  static auto* const original = Original<int(int, off64_t)>("ftruncate64");
  if (Counts(file) && Next("ftruncate", Need::kSpace) != Fate::kGoesOn) return -1;
  return original(file, size);
}
int ftruncate(int file, off_t size) noexcept { return ftruncate64(file, size); }

int rename(const char* from, const char* to) noexcept {
  static auto* const original = Original<int(const char*, const char*)>("rename");
  return Next("rename", Need::kNone) == Fate::kFails ? -1 : original(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const original = Original<int(const char*, mode_t)>("mkdir");
  return Next("mkdir", Need::kSpace) != Fate::kGoesOn ? -1 : original(path, mode);
}

int fsync(int file) {
  static auto* const original = Original<int(int)>("fsync");
  return Counts(file) && Next("fsync", Need::kNone) == Fate::kFails ? -1 : original(file);
}
int fdatasync(int file) {
  static auto* const original = Original<int(int)>("fdatasync");
  return Counts(file) && Next("fdatasync", Need::kNone) == Fate::kFails ? -1 : original(file);
}

}  // extern "C"
#pragma GCC visibility pop
