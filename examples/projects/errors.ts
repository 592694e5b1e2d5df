/** Error in the format of PostgREST. `message`, `details`, and `hint` tell agents what to change. */
export class ApiError extends Error {
  readonly status: number;
  readonly body: { code: string | null; message: string; details: string | null; hint: string | null };

  constructor(status: number, code: string | null, message: string, more: { details?: string; hint?: string } = {}) {
    super(message);
    this.status = status;
    this.body = { code, message, details: more.details ?? null, hint: more.hint ?? null };
  }
}

/** Converts a constraint violation to the error that PostgreSQL would return. Returns other errors unchanged. */
export function fromSqlite(error: unknown, table: string): unknown {
  if (!(error instanceof Error) || !('errcode' in error)) return error;
  const subject = error.message.replace(/^.*failed: (?:\w+\.)?/, '');
  // Extended result codes, https://www.sqlite.org/rescode.html
  switch (error.errcode) {
    case 275:
      return new ApiError(400, '23514', `new row for relation "${table}" violates a check constraint`, {
        details: subject,
      });
    case 1299:
      return new ApiError(400, '23502', `null value in column "${subject}" of "${table}" violates not-null constraint`);
    case 1555:
      return new ApiError(409, '23505', `duplicate key value violates unique constraint "${table}_pkey"`);
    case 787:
      return new ApiError(409, '23503', `write to table "${table}" violates a foreign key constraint`, {
        details: 'The project_id of a task must be the id of an existing project.',
      });
    default:
      return error;
  }
}
