import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { type Bundle, maxBundleCharacters, mayReferenceFiles } from '@toolhost/openapi-to-tools/bundle';
import { canBePage, maxPageSteps, type PageStep } from '@toolhost/openapi-to-tools/document/page';
import type { BundleInput } from './import-job.ts';

type FileDeps = {
  /** Fetches a file. @throws AppError */
  readFile: (address: string) => Promise<Uint8Array | undefined>;
  /** Combines the files that were fetched so far into one document, on a thread. */
  bundle: (input: BundleInput) => Promise<Bundle>;
};

type PageDeps<Fetched> = {
  /** Examines a page on a thread. @throws AppError invalid if it shows no description, or several */
  examine: (input: { document: Uint8Array; pageUrl: string }) => Promise<PageStep | undefined>;
  /** Fetches the URL that a page names. @throws AppError */
  follow: (address: string) => Promise<Fetched>;
};

/** Returns the fetched document, or the description that it shows if it is a page. @throws AppError invalid */
export async function followPages<Fetched extends { url: string; body: Buffer | undefined }>(
  fetched: Fetched,
  { examine, follow }: PageDeps<Fetched>,
): Promise<Fetched> {
  let current = fetched;
  for (let steps = 0; steps < maxPageSteps && current.body && canBePage(current.body, steps); steps++) {
    const pageStep = await examine({ document: current.body, pageUrl: current.url });
    if (!pageStep) break;
    if ('document' in pageStep) return { ...current, body: Buffer.from(pageStep.document) };
    current = await follow(pageStep.address);
  }
  return current;
}

/**
 * Combines a description with the files that it refers to into one document; undefined if it already is one. A file
 * that cannot be read becomes a finding of the import.
 * @throws AppError invalid
 */
export async function bundleFiles(
  document: Uint8Array,
  base: string,
  { readFile, bundle }: FileDeps,
): Promise<Buffer | undefined> {
  if (!mayReferenceFiles(document)) return undefined;
  const files = new Map<string, { bytes: Uint8Array } | { problem: string }>();
  let bytes = document.length;
  for (;;) {
    const bundled = await bundle({ document, base, files });
    if ('document' in bundled) return bundled.document === undefined ? undefined : Buffer.from(bundled.document);
    for (const address of bundled.missing) {
      const file = await readFile(address).then((body = new Uint8Array()) => ({ bytes: body }), toFileProblem);
      bytes += 'bytes' in file ? file.bytes.length : 0;
      if (bytes > maxBundleCharacters)
        throw invalidInputError([
          { path: 'url', message: 'is larger than 16 MB including its files; allowed: up to 16 MB' },
        ]);
      files.set(address, file);
    }
  }
}

function toFileProblem(error: unknown): { problem: string } {
  if (!(error instanceof AppError)) throw error;
  return { problem: error.problems[0]?.message ?? error.message };
}
