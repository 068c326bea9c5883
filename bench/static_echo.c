/* Gives back every byte from its terminal, which it makes raw, as it comes. Begins with one, and
 * ends behind a dot. */
#include <termios.h>
#include <unistd.h>

int main(void)
{
    struct termios lines;
    char byte = '>';

    if (tcgetattr(STDIN_FILENO, &lines))
        return 1;
    cfmakeraw(&lines);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &lines))
        return 1;
    do
        if (write(STDOUT_FILENO, &byte, 1) != 1)
            return 1;
    while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '.');
    return 0;
}
