import type { OwnedNames } from '../http/parameter-names.ts';
import type { TextOrArgument, WireStyle } from '../input-schema.ts';

/** Validated arguments of a call, with defaults applied. Numbers may be `JSON.rawJSON` objects. */
export type Arguments = { [name: string]: unknown };

/** An argument outside the URL template, and how it is sent. */
export type WireArgument = {
  name: string;
  /** Name in the query, the headers, or the body. */
  wireName: string;
  location: 'query' | 'header' | 'cookie' | 'body';
  /** Undefined for the default: arrays follow the tool's `array_format`, objects become JSON text. */
  style: WireStyle | undefined;
  /** Names that callers must not use for properties of an object. */
  reservedNames: OwnedNames | undefined;
  /** True if the reserved characters of a query value are not encoded. */
  allowsReserved: boolean;
  isBase64: boolean;
  fileName: TextOrArgument | undefined;
  mediaType: TextOrArgument | undefined;
};
