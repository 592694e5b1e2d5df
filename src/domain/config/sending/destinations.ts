import { headerOf, isSafeMethod, mediaTypeOf } from '../../http/headers.ts';
import type { Argument } from './argument.ts';

export const bodyEncodings = ['json', 'form', 'multipart'] as const;
export type Encoding = (typeof bodyEncodings)[number];

/** How the body of a tool is made: in an encoding, as one argument, or from a template. */
export type BodyKind = Encoding | 'argument' | 'template';

/** Where an argument goes; `part`: only into a template of the body, or into the name or the type of a file. */
export type Destination = 'url' | 'query' | 'header' | 'body' | 'part';

/** Whether the `body` of a tool names an encoding; otherwise it names an argument. */
export function isEncoding(body: string | undefined): body is Encoding {
  return (bodyEncodings as readonly (string | undefined)[]).includes(body);
}

/** The body encoding that a static Content-Type decides, or undefined when it decides none. */
export function encodingOf(contentType: string): Encoding | undefined {
  const type = mediaTypeOf(contentType);
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type === 'multipart/form-data') return 'multipart';
  return /[/+]json$/.test(type) ? 'json' : undefined;
}

/** The fields of a tool that decide about its body. */
export type BodyFields = {
  method: string;
  body?: string | undefined;
  body_template?: unknown;
  headers: { readonly [name: string]: string };
};

/** The static Content-Type of a tool. */
export function contentTypeOfTool({ headers }: Pick<BodyFields, 'headers'>): string | undefined {
  return headerOf(headers, 'content-type');
}

export function bodyKindOf(tool: BodyFields): BodyKind {
  if (tool.body_template !== undefined) return 'template';
  if (tool.body !== undefined) return isEncoding(tool.body) ? tool.body : 'argument';
  const contentType = contentTypeOfTool(tool);
  return (contentType === undefined ? undefined : encodingOf(contentType)) ?? 'json';
}

/** Whether requests of this method have a body only where the tool says so. */
export function hasNoUsualBody(method: string): boolean {
  return isSafeMethod(method) || method === 'DELETE';
}

/**
 * Where each argument of a tool goes. `inUrl` and `inBody` are the arguments of its templates. An argument of a template
 * is not sent a second time unless its `in` says so.
 */
export function destinationsOf(
  tool: BodyFields,
  declared: readonly Argument[],
  { inUrl, inBody }: { inUrl: readonly string[]; inBody: readonly string[] },
): Map<string, Destination> {
  const kind = bodyKindOf(tool);
  const usual = hasNoUsualBody(tool.method) || kind === 'argument' || kind === 'template' ? 'query' : 'body';
  const parts = new Set([...inBody, ...describingArguments(declared)]);
  const of = ({ name, location }: Argument): Destination => {
    if (inUrl.includes(name)) return 'url';
    if (kind === 'argument' && name === tool.body) return 'body';
    if (parts.has(name) && (location === undefined || (kind === 'template' && location === 'body'))) return 'part';
    return location === undefined || location === 'path' ? usual : location;
  };
  return new Map(declared.map((argument) => [argument.name, of(argument)]));
}

/** Arguments that are the file name or the media type of another one. */
function describingArguments(declared: readonly Argument[]): string[] {
  return declared.flatMap(({ wire }) =>
    [wire.file_name, wire.media_type].flatMap((text) => (typeof text === 'object' ? [text.argument] : [])),
  );
}
