/* `cordon-files`: carries out file calls for the server, with the rights of the sandbox that it was
 * started in, on the socket that is its standard input. It ends when the server closes that. */
#include "base/err.h"
#include "files/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    struct err err;

    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is the error EFBIG of one call */
    if (files_serve(STDIN_FILENO, &err) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "cordon-files: %s\n", err.msg);
    return EXIT_FAILURE;
}
