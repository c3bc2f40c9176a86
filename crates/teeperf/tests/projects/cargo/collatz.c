static int step(long number)
{
    return number % 2 ? 1 : 0;
}

int collatz_length(long number)
{
    int length = 1;
    for (; number != 1; length++)
        number = step(number) ? 3 * number + 1 : number / 2;
    return length;
}
