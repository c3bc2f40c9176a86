/* A small search engine over a library that it writes itself: threads index the books,
 * then questions are parsed, answered and ranked. Made to be profiled: its time goes where
 * one would not look first. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOKS = 96, WORDS_IN_BOOK = 15000, INDEXERS = 3, WORD_SIZE = 16, BUCKETS = 61, QUESTIONS = 24 };

struct entry {
    struct entry *next;
    char word[WORD_SIZE];
    int times[BOOKS];
};

struct index {
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS]; /* far too few: see who calls strcmp */
};

struct hit {
    int book;
    double score;
};

static struct index library;
static char *books[BOOKS];

/* ---- writing the library ---- */

static uint32_t random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void invent_word(uint64_t *state, char *word)
{
    static const char *parts[] = {"ka", "lo", "mi", "ner", "to", "sa", "ru", "vel", "en", "do"};
    unsigned range = random_number(state) % 4 ? 4 : 10; /* a few words are common */
    word[0] = 0;
    for (int i = 0, n = 2 + random_number(state) % 2; i < n; i++)
        strcat(word, parts[random_number(state) % range]);
}

static char *write_book(int number)
{
    uint64_t state = 1000 + number;
    char *text = malloc(WORDS_IN_BOOK * WORD_SIZE), *end = text;
    for (int i = 0; i < WORDS_IN_BOOK; i++) {
        char word[WORD_SIZE];
        invent_word(&state, word);
        end += sprintf(end, "%s%s", word, i % 12 == 11 ? ".\n" : " ");
    }
    return text;
}

/* ---- indexing ---- */

static int is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static const char *next_word(const char *text, char *word)
{
    int length = 0;
    while (*text && !is_letter(*text))
        text++;
    while (is_letter(*text) && length < WORD_SIZE - 1)
        word[length++] = *text++;
    word[length] = 0;
    return length ? text : NULL;
}

static void strip_ending(char *word)
{
    static const char *endings[] = {"en", "er", "el"};
    size_t length = strlen(word);
    for (int i = 0; i < 3; i++)
        if (length > 4 && !strcmp(word + length - 2, endings[i]))
            word[length - 2] = 0;
}

static unsigned bucket_of(const char *word)
{
    unsigned hash = 5381;
    while (*word)
        hash = hash * 33 + *word++;
    return hash % BUCKETS;
}

static int same_word(const char *a, const char *b)
{
    return !strcmp(a, b);
}

static struct entry *find_entry(const char *word)
{
    struct entry *entry = library.buckets[bucket_of(word)];
    while (entry && !same_word(entry->word, word))
        entry = entry->next;
    return entry;
}

static struct entry *add_entry(const char *word)
{
    struct entry *entry = calloc(1, sizeof *entry), **bucket = &library.buckets[bucket_of(word)];
    strcpy(entry->word, word);
    entry->next = *bucket;
    return *bucket = entry;
}

static void count_word(const char *word, int book)
{
    pthread_mutex_lock(&library.lock);
    struct entry *entry = find_entry(word);
    if (!entry)
        entry = add_entry(word);
    entry->times[book]++;
    pthread_mutex_unlock(&library.lock);
}

static void index_book(int book)
{
    char word[WORD_SIZE];
    const char *text = books[book];
    while ((text = next_word(text, word))) {
        strip_ending(word);
        count_word(word, book);
    }
}

static void *indexer(void *first)
{
    for (int book = (int)(intptr_t)first; book < BOOKS; book += INDEXERS)
        index_book(book);
    return NULL;
}

static void index_library(void)
{
    pthread_t threads[INDEXERS];
    for (intptr_t i = 0; i < INDEXERS; i++)
        pthread_create(&threads[i], NULL, indexer, (void *)i);
    for (int i = 0; i < INDEXERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- answering: or-lists of and-lists of words and (groups) ---- */

static const char *parse_or(const char *text, double *scores);

static void score_word(const char *word, double *scores)
{
    struct entry *entry = find_entry(word);
    for (int i = 0; entry && i < BOOKS; i++)
        if (entry->times[i])
            scores[i] += 1.0 + entry->times[i] / 10.0;
}

static const char *parse_term(const char *text, double *scores)
{
    if (*text == '(')
        return parse_or(text + 1, scores) + 1;
    char word[WORD_SIZE];
    text = next_word(text, word);
    strip_ending(word);
    score_word(word, scores);
    return text;
}

static const char *parse_and(const char *text, double *scores)
{
    text = parse_term(text, scores);
    while (*text == '&') {
        double right[BOOKS] = {0};
        text = parse_term(text + 1, right);
        for (int i = 0; i < BOOKS; i++)
            scores[i] = scores[i] && right[i] ? scores[i] + right[i] : 0;
    }
    return text;
}

static const char *parse_or(const char *text, double *scores)
{
    text = parse_and(text, scores);
    while (*text == '|') {
        double right[BOOKS] = {0};
        text = parse_and(text + 1, right);
        for (int i = 0; i < BOOKS; i++)
            scores[i] += right[i];
    }
    return text;
}

static int is_better(const struct hit *a, const struct hit *b)
{
    return a->score != b->score ? a->score > b->score : a->book < b->book;
}

static void rank(struct hit *hits, int count)
{
    if (count < 2)
        return;
    struct hit pivot = hits[count / 2];
    int low = 0, high = count - 1;
    while (low <= high) {
        while (is_better(&hits[low], &pivot))
            low++;
        while (is_better(&pivot, &hits[high]))
            high--;
        if (low <= high) {
            struct hit swap = hits[low];
            hits[low++] = hits[high];
            hits[high--] = swap;
        }
    }
    rank(hits, high + 1);
    rank(hits + low, count - low);
}

static struct hit answer(const char *question)
{
    double scores[BOOKS] = {0};
    struct hit hits[BOOKS];
    parse_or(question, scores);
    for (int i = 0; i < BOOKS; i++)
        hits[i] = (struct hit){i, scores[i]};
    rank(hits, BOOKS);
    return hits[0];
}

int main(void)
{
    static const char *questions[] = {
        "kalo&milo", "(kami|lolo)&ner", "nerner|(kaka&(mimi|lomi))", "veldo|saru&(toen|kalo)",
    };
    pthread_mutex_init(&library.lock, NULL);
    for (int i = 0; i < BOOKS; i++)
        books[i] = write_book(i);
    index_library();
    double sum = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        struct hit best = answer(questions[i % 4]);
        sum += best.score;
        if (i < 4)
            printf("%-28s book %2d, score %.1f\n", questions[i], best.book, best.score);
    }
    printf("%d books, %d questions, sum of best scores %.1f\n", BOOKS, QUESTIONS, sum);
    return 0;
}
