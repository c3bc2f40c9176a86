// Tasks that hand on to each other when they end, as those of coroutine libraries do.
#include <coroutine>
#include <cstdio>

struct Task {
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;
  struct Final {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle ended) noexcept;
    void await_resume() noexcept {}
  };
  struct promise_type {
    std::coroutine_handle<> next;
    Task get_return_object() { return Task{Handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  Handle handle;
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
    handle.promise().next = waiting;
    return handle;
  }
  void await_resume() { handle.destroy(); }
};

std::coroutine_handle<> Task::Final::await_suspend(Handle ended) noexcept { return ended.promise().next; }

static int worked;
__attribute__((noinline)) void work() { worked++; }
Task step() { work(); co_return; }
Task all() {
  for (int i = 0; i < 100; i++)
    co_await step();
  std::printf("%d\n", worked);
  co_await std::suspend_always{};
}

int main() {
  Task task = all();
  task.handle.resume();
  task.handle.destroy();
}
