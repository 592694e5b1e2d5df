import { invalid } from '../errors.ts';
import { bundleFindings } from './bundle.ts';
import { isCurl, readCurl } from './collections/curl.ts';
import { isHar, readHar } from './collections/har.ts';
import { isPostman, readPostman } from './collections/postman.ts';
import { parseDocument } from './document/parse-document.ts';
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

/** Large descriptions are often kept in many files, which a text by itself does not lead to. */
function whyNone({ findings }: ApiDescription): string {
  const elsewhere = findings.find(({ message }) => message.endsWith(notFetched));
  if (!elsewhere) return 'found no operations; an OpenAPI document has them in paths';
  return `found no operations: ${elsewhere.at} ${elsewhere.message}. Files below the folder of the description, or at its origin, are read when the command line or the service reads it from there. Or make one file of it first, for example with: npx @redocly/cli bundle openapi.yaml -o bundled.json`;
}

function readAny(text: string): ApiDescription {
  if (isCurl(text)) return readCurl(text);
  const { value, findings } = parseDocument(text);
  const description = isPostman(value)
    ? readPostman(value)
    : isHar(value)
      ? readHar(value)
      : isOpenApi(value) && readOpenApi(value);
  if (description)
    return { ...description, findings: [...findings, ...bundleFindings(value), ...description.findings] };
  throw invalid([
    {
      path: 'document',
      message:
        'not an API description; allowed: OpenAPI 3, Swagger 2 (JSON or YAML), a Postman collection, curl commands or HAR',
    },
  ]);
}
