import manifest from '../../../package.json' with { type: 'json' };

/** `commit` is set in the manifest of the compiled program (`build/package/build.ts`) and absent in a checkout. */
export const { version, commit }: { version: string; commit?: string } = manifest;

const installedProgramName = process.env.npm_command === undefined ? 'toolhost' : 'npx toolhost';
/** Command that starts the command line the way this process was started. `npx` sets `npm_command`. */
export const programName = commit === undefined ? 'bin/toolhost' : installedProgramName;

/**
 * Returns the User-Agent of requests. It includes the service's address where the recipient may learn who sends the
 * request.
 */
export function formatUserAgent(baseUrl?: string): string {
  return baseUrl === undefined ? `Toolhost/${version}` : `Toolhost/${version} (+${baseUrl})`;
}
