/* Shifts the wall clock of a process by LD_PRELOAD: by so many seconds as the file $CLOCK_SHIFT says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  static long seconds, read_ms;
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  long now_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (now_ms - read_ms > 20) {
    char text[32] = {0};
    const char *path = getenv("CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
      if (read(file, text, sizeof text - 1) > 0) seconds = atol(text);
      close(file);
    }
    read_ms = now_ms;
  }
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  int answer = syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += shift();
  return answer;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
