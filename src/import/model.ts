/** What the readers make of an API description, whatever its format. Schemas stay as the document has them. */

/** Something in the document that could not be read, was repaired or was left out. `at` is its location. */
export type Finding = { at: string; message: string };

export const inputLocations = ['path', 'query', 'header', 'cookie', 'querystring'] as const;
export type InputLocation = (typeof inputLocations)[number];

/**
 * How arrays and objects are written; `repeat` makes a pair of each property of an object, `comma` joins names and values.
 * No tool can write `tab`, nor `exploded`: the `explode` of OpenAPI outside of queries.
 */
export type InputStyle = 'repeat' | 'comma' | 'brackets' | 'pipe' | 'space' | 'tab' | 'exploded' | 'deep' | 'json';

export type ApiInput = {
  /** The name on the wire. */
  name: string;
  location: InputLocation;
  required: boolean;
  description: string;
  /** As the document has it; the references in it are those of the document. */
  schema: unknown;
  style?: InputStyle | undefined;
  /** Whether a path value may hold slashes. */
  allowSlashes?: boolean;
  /** True if the reserved characters of a query value are not encoded. */
  allowReserved?: boolean;
  /** Text before a path value, as the styles `matrix` and `label` want it. */
  prefix?: string;
};

/** How one field of a form or multipart body is written. `mediaType` may be several, separated by commas. */
export type FieldEncoding = { style: InputStyle | undefined; mediaType: string | undefined };

export type ApiContent = {
  mediaType: string;
  schema: unknown;
  encodings: ReadonlyMap<string, FieldEncoding>;
  /** The body as a value, where the source is a request rather than a description. */
  example?: unknown;
};

export type ApiBody = { required: boolean; description: string; contents: readonly ApiContent[] };

/** Credentials of which all are needed at once: names of schemes, with the scopes of each. */
export type ApiRequirement = ReadonlyMap<string, readonly string[]>;

export type ApiOperation = {
  /** Its location in the document, such as `paths./pets.get`. */
  at: string;
  method: string;
  /** As the document has it: by it and its method, people and later imports find the operation. */
  path: string;
  /** The path with each parameter as `{name}`, and without a fragment. */
  route: string;
  operationId: string | undefined;
  tags: readonly string[];
  summary: string;
  description: string;
  isDeprecated: boolean;
  inputs: readonly ApiInput[];
  body: ApiBody | undefined;
  /** Alternatives; empty when none is described, and one empty requirement when none is needed. */
  security: readonly ApiRequirement[];
  /** Servers of this operation, where they differ from those of the API. */
  servers: readonly ApiServer[] | undefined;
  answers: ApiAnswers;
  /** Why no tool can be made of it, when the reader knows already. */
  unreadable: string | undefined;
};

/** Parts of the described answers that decide the request or its reading. */
export type ApiAnswers = {
  mediaTypes: readonly string[];
  headers: readonly string[];
  isRedirect: boolean;
  /** The fields of the successful JSON answer, and those one level down as `outer.inner`. */
  fields: readonly string[];
  /** The schema of that answer, as the document has it. */
  schema: unknown;
};

export type ServerVariable = {
  name: string;
  fallback: string | undefined;
  options: readonly string[];
  description: string;
};

/** `url` may be relative, and has variables in braces. */
export type ApiServer = { url: string; description: string; variables: readonly ServerVariable[] };

export type ApiScheme = {
  name: string;
  /** The only address that gets it, where it was found in a request; a description says itself where it belongs. */
  address?: string | undefined;
  kind: 'bearer' | 'basic' | 'key' | 'oauth2' | 'aws' | 'unsupported';
  description: string;
  /** Location and name of a key. */
  in?: 'header' | 'query' | 'cookie';
  parameter?: string;
  /** Text before a key, such as `Token token=`. */
  prefix?: string;
  /** The address at which codes and client credentials are exchanged, and that for people. */
  tokenUrl?: string | undefined;
  authorizationUrl?: string | undefined;
  clientTokenUrl?: string | undefined;
  /** What an AWS signature is for, where that was found. */
  aws?: { region: string; service: string } | undefined;
  /** Why it is not supported. */
  reason?: string;
};

export type ApiDescription = {
  format:
    | 'OpenAPI'
    | 'Swagger'
    | 'Postman'
    | 'Insomnia'
    | 'Bruno'
    | 'OpenCollection'
    | 'HTTP file'
    | 'curl'
    | 'fetch'
    | 'HAR';
  version: string;
  title: string;
  description: string;
  tags: readonly { name: string; description: string }[];
  servers: readonly ApiServer[];
  operations: readonly ApiOperation[];
  schemes: ReadonlyMap<string, ApiScheme>;
  /** The document in which the references of schemas are looked up. */
  root: unknown;
  findings: readonly Finding[];
};
