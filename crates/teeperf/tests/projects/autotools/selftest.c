int digit_sum(long number);

int main(void)
{
    return digit_sum(99) == 18 ? 0 : 1;
}
