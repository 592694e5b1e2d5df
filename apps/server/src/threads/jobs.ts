/** Result of a job: its output, and the buffers in it that are transferred instead of copied. */
export type JobDone<Output> = { output: Output; transfer?: readonly ArrayBuffer[] };

/** Loads the function of each kind of job, at the first job of its kind in a thread. Inputs and outputs are cloned. */
export const jobs = {
  'bundle-description': async () => (await import('../operations/imports/import-job.ts')).runBundle,
  'check-arguments': async () => (await import('../gateway/arguments/validate-arguments.ts')).checkArguments,
  reimport: async () => (await import('../operations/imports/import-job.ts')).runReimport,
  'check-configuration': async () => (await import('../operations/check-config.ts')).runConfigurationJob,
  'plan-import': async () => (await import('../operations/imports/import-job.ts')).runImport,
  'read-page': async () => (await import('../operations/imports/import-job.ts')).runPage,
  'read-response': async () => (await import('../gateway/response/response-job.ts')).readResponseBody,
  'read-body': async () => (await import('../operations/long-body.ts')).readLongBody,
  'decode-body': async () => (await import('@toolhost/safe-http/decode')).runDecodeJob,
  'write-capture': async () => (await import('../gateway/captures/capture-job.ts')).writeCapture,
};

export type JobKind = keyof typeof jobs;
type Job<Kind extends JobKind> = Awaited<ReturnType<(typeof jobs)[Kind]>>;
export type JobInput<Kind extends JobKind> = Parameters<Job<Kind>>[0];
export type JobOutput<Kind extends JobKind> = Awaited<ReturnType<Job<Kind>>>['output'];
