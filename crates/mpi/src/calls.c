/* The dozen calls of MPI that ranks need, with plain types: MPI's own differ from one implementation to the next, and
 * some are macros. Whoever calls keeps to one thread at a time. Each returns 0, or an error code of MPI. */

#include <mpi.h>
#include <stdlib.h>

int corridor_mpi_start(int *rank, int *size) {
    int provided = 0, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED) error = MPI_ERR_UNSUPPORTED_OPERATION;
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, size);
    return error;
}

int corridor_mpi_finish(void) { return MPI_Finalize(); }

void corridor_mpi_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* Begins to send in a lane (a tag); `data` stays until corridor_mpi_wait or corridor_mpi_is_sent has taken the request. */
int corridor_mpi_send(const void *data, int bytes, int to, int lane, void **request) {
    MPI_Request *began = malloc(sizeof *began);
    if (!began) return MPI_ERR_NO_MEM;
    int error = MPI_Isend(data, bytes, MPI_BYTE, to, lane, MPI_COMM_WORLD, began);
    if (error == MPI_SUCCESS) *request = began;
    else free(began);
    return error;
}

/* Sets `sent` and takes the request where the data have left. */
int corridor_mpi_is_sent(void *request, int *sent) {
    int error = MPI_Test(request, sent, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS || *sent) free(request);
    return error;
}

int corridor_mpi_wait(void *request) {
    int error = MPI_Wait(request, MPI_STATUS_IGNORE);
    free(request);
    return error;
}

/* Looks for the next message of a rank in a lane; where there is one, `message` is it and `bytes` its size. */
int corridor_mpi_look(int from, int lane, int *is_there, void **message, int *bytes) {
    MPI_Message found;
    MPI_Status status;
    int error = MPI_Improbe(from, lane, MPI_COMM_WORLD, is_there, &found, &status);
    if (error != MPI_SUCCESS || !*is_there) return error;
    error = MPI_Get_count(&status, MPI_BYTE, bytes);
    if (error != MPI_SUCCESS) return error;
    MPI_Message *kept = malloc(sizeof *kept);
    if (!kept) return MPI_ERR_NO_MEM;
    *kept = found;
    *message = kept;
    return MPI_SUCCESS;
}

/* Takes the message that corridor_mpi_look found. */
int corridor_mpi_receive(void *message, void *data, int bytes) {
    int error = MPI_Mrecv(data, bytes, MPI_BYTE, message, MPI_STATUS_IGNORE);
    free(message);
    return error;
}

/* Writes what an error code means, at most `room` bytes with the end; at least MPI_MAX_ERROR_STRING of them. */
int corridor_mpi_describe(int code, char *text, int room) {
    int length = 0;
    if (room < MPI_MAX_ERROR_STRING) return MPI_ERR_ARG;
    return MPI_Error_string(code, text, &length);
}
