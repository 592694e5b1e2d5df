import { AppError, invalid } from '../../errors.ts';
import { type Bundle, mayHaveFiles, mostFileCharacters } from '../../import/bundle.ts';
import { maxPageSteps, mayBePage, type PageStep } from '../../import/document/page.ts';
import type { BundleInput } from './import-job.ts';

type FileParts = {
  /** Fetches a file. @throws AppError */
  read: (address: string) => Promise<Uint8Array | undefined>;
  /** Combines the files that were fetched so far into one document, on a thread. */
  bundle: (input: BundleInput) => Promise<Bundle>;
};

type PageParts<Fetched> = {
  /** Examines a page on a thread. @throws AppError invalid if it shows no description, or several */
  step: (input: { document: Uint8Array; at: string }) => Promise<PageStep | undefined>;
  /** Fetches the URL that a page names. @throws AppError */
  follow: (address: string) => Promise<Fetched>;
};

/** Returns the fetched document, or the description that it shows if it is a page. @throws AppError invalid */
export async function followPages<Fetched extends { url: string; body: Buffer | undefined }>(
  first: Fetched,
  { step, follow }: PageParts<Fetched>,
): Promise<Fetched> {
  let main = first;
  for (let steps = 0; steps < maxPageSteps && main.body && mayBePage(main.body, steps); steps++) {
    const next = await step({ document: main.body, at: main.url });
    if (!next) break;
    if ('document' in next) return { ...main, body: Buffer.from(next.document) };
    main = await follow(next.address);
  }
  return main;
}

/**
 * Combines a description with the files that it refers to into one document; undefined if it already is one. A file
 * that cannot be read becomes a finding of the import.
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
      if (bytes > mostFileCharacters)
        throw invalid([{ path: 'url', message: 'is larger than 16 MB including its files; allowed: up to 16 MB' }]);
      files.set(address, file);
    }
  }
}

function problemOf(error: unknown): { problem: string } {
  if (!(error instanceof AppError)) throw error;
  return { problem: error.problems[0]?.message ?? error.message };
}
