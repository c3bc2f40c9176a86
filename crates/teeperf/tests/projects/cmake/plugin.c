int plugin_answer(int question)
{
    return question + 1;
}
