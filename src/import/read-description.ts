import { invalid } from '../errors.ts';
import { bundleFindings } from './bundle.ts';
import { isBru } from './collections/bru-blocks.ts';
import { readBru } from './collections/bruno.ts';
import { isBrunoExport, readBrunoExport } from './collections/bruno-export.ts';
import { isCurl, readCurl } from './collections/curl.ts';
import { isFetch, readFetch } from './collections/fetch.ts';
import { isHar, readHar } from './collections/har.ts';
import { isHttpFile, readHttpFile } from './collections/http-file.ts';
import { findInsomniaSpec, isInsomnia, readInsomnia } from './collections/insomnia.ts';
import { isPostman, readPostman } from './collections/postman.ts';
import { explainForeignFormat } from './document/foreign-formats.ts';
import type { JsonFields } from './document/lenient.ts';
import { parseDocument, stripFence } from './document/parse-document.ts';
import { notFetched } from './document/references.ts';
import type { ApiDescription } from './model.ts';
import { isOpenApi, readOpenApi } from './openapi/read-openapi.ts';

/** Most operations of one document. */
export const mostOperations = 20_000;

/**
 * Reads an API description of any known format from text. Nothing is fetched.
 * @throws AppError invalid when the text is none, or exceeds the limits of documents
 */
export function readDescription(text: string): ApiDescription {
  const description = readAny(text);
  const count = description.operations.length;
  if (count > mostOperations) {
    throw invalid([
      {
        path: 'document',
        message: `found ${count} operations; allowed: at most ${mostOperations}; import a part of the document`,
      },
    ]);
  }
  if (count === 0) throw invalid([{ path: 'document', message: whyNone(description) }]);
  return description;
}

const notKnown =
  'not an API description; allowed: OpenAPI 3, Swagger 2 (JSON or YAML), a collection of Postman, Insomnia or Bruno, an .http file, curl commands, fetch calls or HAR';

/** Large descriptions are often kept in many files, which a text by itself does not lead to. */
function whyNone({ findings }: ApiDescription): string {
  const elsewhere = findings.find(({ message }) => message.endsWith(notFetched));
  if (!elsewhere) return 'found no operations; an OpenAPI document has them in paths';
  return `found no operations: ${elsewhere.at} ${elsewhere.message}. Files below the folder of the description, or at its origin, are read when the command line or the service reads it from there. Or make one file of it first, for example with: npx @redocly/cli bundle openapi.yaml -o bundled.json`;
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
    return { ...description, findings: [...findings, ...bundleFindings(value), ...description.findings] };
  throw invalid([{ path: 'document', message: explainForeignFormat(plain, value) ?? notKnown }]);
}

function readValue(value: unknown): ApiDescription | undefined {
  if (isPostman(value)) return readPostman(value);
  if (isHar(value)) return readHar(value);
  if (isInsomnia(value)) return specOf(value) ?? readInsomnia(value);
  if (isBrunoExport(value)) return readBrunoExport(value);
  return isOpenApi(value) ? readOpenApi(value) : undefined;
}

/** The OpenAPI document inside of a design document of Insomnia, which says more than the requests beside it. */
function specOf(root: JsonFields): ApiDescription | undefined {
  const spec = findInsomniaSpec(root);
  const value = typeof spec === 'string' ? parseDocument(spec).value : spec;
  const description = isOpenApi(value) ? readOpenApi(value) : undefined;
  return description && description.operations.length > 0 ? description : undefined;
}
