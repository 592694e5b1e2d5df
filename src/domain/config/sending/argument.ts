import type { WireFields } from './wire-fields.ts';

export const argumentLocations = ['path', 'query', 'header', 'body'] as const;
export type ArgumentLocation = (typeof argumentLocations)[number];

/** One argument of a tool, for building the request. */
export type Argument = {
  name: string;
  required: boolean;
  location: ArgumentLocation | undefined;
  fallback: unknown;
  /** How it is sent; empty for most. `wire.value` is the value of an argument that callers do not give. */
  wire: WireFields;
  /** The declared JSON type, where it is one. */
  type: string | undefined;
  /** Whether it is an object or an array of objects. */
  isNested: boolean;
};
