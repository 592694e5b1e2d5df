import { AppError, invalid } from '../../errors.ts';
import { type Bundle, mayHaveFiles, mostFileCharacters } from '../../import/bundle.ts';
import type { BundleInput } from './import-job.ts';

type FileParts = {
  /** Fetches a file. @throws AppError */
  read: (address: string) => Promise<Uint8Array | undefined>;
  /** Makes one document of what was read until now, on a thread. */
  bundle: (input: BundleInput) => Promise<Bundle>;
};

/**
 * A description with the files that it refers to, as one document; undefined for one that is one already. A file that
 * cannot be read is a finding of the import.
 * @throws AppError invalid
 */
export async function withFiles(
  document: Uint8Array,
  base: string,
  { read, bundle }: FileParts,
): Promise<Buffer | undefined> {
  if (!mayHaveFiles(document)) return undefined;
  const files = new Map<string, { bytes: Uint8Array } | { problem: string }>();
  let bytes = document.length;
  for (;;) {
    const bundled = await bundle({ document, base, files });
    if ('document' in bundled) return bundled.document === undefined ? undefined : Buffer.from(bundled.document);
    for (const address of bundled.missing) {
      const file = await read(address).then((body = new Uint8Array()) => ({ bytes: body }), problemOf);
      bytes += 'bytes' in file ? file.bytes.length : 0;
      if (bytes > mostFileCharacters) throw invalid([{ path: 'url', message: 'has more than 16 MB with its files' }]);
      files.set(address, file);
    }
  }
}

function problemOf(error: unknown): { problem: string } {
  if (!(error instanceof AppError)) throw error;
  return { problem: error.problems[0]?.message ?? error.message };
}
