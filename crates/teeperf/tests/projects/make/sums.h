double sum_of_roots(int count);
