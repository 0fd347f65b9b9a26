/* A statically linked program, into which no library can be preloaded. */
int main(void)
{
    return 0;
}
