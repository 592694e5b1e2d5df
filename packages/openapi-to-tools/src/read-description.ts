import { invalidInputError } from '@toolhost/errors/errors';
import { getBundleFindings } from './bundle.ts';
import { isBru } from './collections/bru-blocks.ts';
import { readBru } from './collections/bruno.ts';
import { isBrunoExport, readBrunoExport } from './collections/bruno-export.ts';
import { isCurl, readCurl } from './collections/curl.ts';
import { isFetch, readFetch } from './collections/fetch.ts';
import { isHar, readHar } from './collections/har.ts';
import { isHttpFile, readHttpFile } from './collections/http-file.ts';
import { findInsomniaSpec, isInsomnia, readInsomnia } from './collections/insomnia.ts';
import { isPostman, readPostman } from './collections/postman.ts';
import { explainUnsupportedFormat } from './document/foreign-formats.ts';
import type { JsonFields } from './document/lenient.ts';
import { parseDocument, stripFence } from './document/parse-document.ts';
import { notFetched } from './document/references.ts';
import type { ApiDescription } from './model.ts';
import { isOpenApi, readOpenApi } from './openapi/read-openapi.ts';

/** Maximum number of operations in one document. */
export const maxOperations = 20_000;

/**
 * Reads an API description in any supported format from text. Fetches nothing.
 * @throws AppError invalid if the text is not an API description or exceeds the document limits
 */
export function readDescription(text: string): ApiDescription {
  const description = readAny(text);
  const count = description.operations.length;
  if (count > maxOperations) {
    throw invalidInputError([
      {
        path: 'document',
        message: `found ${count} operations; allowed: at most ${maxOperations}; import part of the document`,
      },
    ]);
  }
  if (count === 0) throw invalidInputError([{ path: 'document', message: explainNoOperations(description) }]);
  return description;
}

const unsupportedFormat =
  'not an API description; allowed: OpenAPI 3, Swagger 2 (JSON or YAML), a Postman, Insomnia, or Bruno collection, an .http file, curl commands, fetch calls, or HAR';

/**
 * Explains why a document has no operations. Large descriptions are often split into many files, which pasted text
 * cannot reference.
 */
function explainNoOperations({ findings }: ApiDescription): string {
  const unfetchedReference = findings.find(({ message }) => message.endsWith(notFetched));
  if (!unfetchedReference) return 'found no operations; OpenAPI documents define them in paths';
  return `found no operations: ${unfetchedReference.at} ${unfetchedReference.message}. Import it by its path or URL, so that files in its folder or at its origin are read too. Or bundle it into one file first: npx @redocly/cli bundle openapi.yaml -o bundled.json`;
}

function readAny(text: string): ApiDescription {
  const plain = stripFence(text);
  if (isCurl(plain)) return readCurl(plain);
  if (isFetch(plain)) return readFetch(plain);
  if (isBru(plain)) return readBru(plain);
  if (isHttpFile(plain)) return readHttpFile(plain);
  const { value, findings } = parseDocument(plain);
  const description = readValue(value);
  if (description)
    return { ...description, findings: [...findings, ...getBundleFindings(value), ...description.findings] };
  throw invalidInputError([{ path: 'document', message: explainUnsupportedFormat(plain, value) ?? unsupportedFormat }]);
}

function readValue(value: unknown): ApiDescription | undefined {
  if (isPostman(value)) return readPostman(value);
  if (isHar(value)) return readHar(value);
  if (isInsomnia(value)) return readInsomniaSpec(value) ?? readInsomnia(value);
  if (isBrunoExport(value)) return readBrunoExport(value);
  return isOpenApi(value) ? readOpenApi(value) : undefined;
}

/**
 * Returns the OpenAPI document inside an Insomnia design document, which is more detailed than the requests next to it.
 */
function readInsomniaSpec(root: JsonFields): ApiDescription | undefined {
  const spec = findInsomniaSpec(root);
  const value = typeof spec === 'string' ? parseDocument(spec).value : spec;
  const description = isOpenApi(value) ? readOpenApi(value) : undefined;
  return description && description.operations.length > 0 ? description : undefined;
}
