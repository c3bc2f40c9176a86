"""What CPython is given to do: calls, objects, containers, text and numbers, without imports.
The same work in every run: nothing depends on time or addresses."""
import sys

size = int(sys.argv[1]) if len(sys.argv) > 1 else 1


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def move(self, other, amount):
        if self.balance >= amount:
            self.balance -= amount
            other.balance += amount
            return True
        return False


def bank(steps):
    accounts = [Account(str(i), 100 * i) for i in range(50)]
    moved, state = 0, 42
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
        moved += accounts[state % 50].move(accounts[state // 50 % 50], state % 17)
    return moved


def words(count):
    text = " ".join(f"{i * 7919 % 1000:x}-{i % 13}" for i in range(count))
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[0][1]


def primes(limit):
    sieve = bytearray([1]) * limit
    for i in range(2, limit):
        if sieve[i]:
            for j in range(i * i, limit, i):
                sieve[j] = 0
    return sum(sieve)


def digits(count):
    return sum(int(digit) for digit in str(3 ** count))


total = 0
for _ in range(size):
    total += fib(22) + bank(100000) + words(60000) + primes(150000) + digits(8000)
print(f"total={total}")
