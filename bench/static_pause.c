/* Waits for ever, in as little memory as possible. */
#include <unistd.h>

int main(void)
{
    for (;;)
        pause();
}
