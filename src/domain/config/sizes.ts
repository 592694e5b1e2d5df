import type { Problem } from '../../errors.ts';
import { somePlaceholder, someText } from '../http/placeholders.ts';
import { mostHeaderLength } from '../http/values.ts';
import { filledValuesOf, type ServerWide, urlsBelow } from './server-wide.ts';
import type { Tool } from './tool.ts';
import { indexTools, toolsOfView, type View, viewToolOf } from './view.ts';

/** What variables make of a configuration, counted without filling anything, and what it takes when it is compiled. */

type Variables = { [name: string]: { value: string } } | undefined;

/** Most characters that variables fill in one field of a tool, in the headers of a server, in a fixed argument. */
export const mostFilledOfField = 65_536;
/** The same in a whole configuration, and most placeholders in it. */
const mostFilled = { characters: 4 * 1024 * 1024, placeholders: 50_000 };

/** Length of a text with its variables filled in. */
export function filledLength(text: string, variables: Variables): number {
  let length = text.length;
  visitPlaceholders(text, variables, (value, placeholder, times) => {
    if (value !== undefined) length += (value - placeholder) * times;
  });
  return length;
}

/** Number of characters that variables fill in the strings of a value. */
export function filledCharacters(value: unknown, variables: Variables): number {
  let sum = 0;
  visitPlaceholders(value, variables, (length = 0, _, times) => {
    sum += length * times;
  });
  return sum;
}

/** Gives the length of what fills each placeholder, undefined for a secret, its own length, and how often it is there. */
function visitPlaceholders(
  value: unknown,
  variables: Variables = {},
  visit: (length: number | undefined, placeholder: number, times: number) => void,
): void {
  const note = (name: string, placeholder: number, times: number) => {
    visit(Object.hasOwn(variables, name) ? variables[name]?.value.length : undefined, placeholder, times);
    return false;
  };
  someText(value, (text) => somePlaceholder(text, note));
}

export function lengthProblem(length: number, most: number): string | undefined {
  return length > most ? `has ${length} characters when filled; allowed: ${most}` : undefined;
}

/** The problem of a value in which variables fill too much. */
export function fillingProblem(value: unknown, variables: Variables): string | undefined {
  const filled = filledCharacters(value, variables);
  if (filled <= mostFilledOfField) return undefined;
  return `variables fill ${filled} characters of it; allowed: ${mostFilledOfField}; use shorter ones, or fewer {{NAME}}`;
}

/** Why headers are too long when they are filled, each by itself or all together; paths are `headers` and below. */
export function filledHeaderProblems(headers: Record<string, string> = {}, variables: Variables): Problem[] {
  const single = Object.entries(headers).flatMap(([name, value]) =>
    problemAt(`headers.${name}`, lengthProblem(filledLength(value, variables), mostHeaderLength)),
  );
  return single.length > 0 ? single : problemAt('headers', fillingProblem(headers, variables));
}

export function problemAt(path: string, message: string | undefined): Problem[] {
  return message === undefined ? [] : [{ path, message }];
}

/** What variables fill in a whole configuration. */
export type Filling = {
  /** Characters of the URLs of tools as they are written. */
  urls: number;
  /** Characters that are filled in them; `base_url` counts each time. */
  inUrls: number;
  /** Characters everywhere else. */
  elsewhere: number;
  placeholders: number;
};

/** The problem of a configuration in which all that is filled together is too much. */
export function wholeFillingProblem({ inUrls, elsewhere, placeholders }: Filling): string | undefined {
  if (placeholders > mostFilled.placeholders)
    return `has ${placeholders} placeholders {{NAME}} in all fields together; allowed: ${mostFilled.placeholders}`;
  const characters = inUrls + elsewhere;
  if (characters <= mostFilled.characters) return undefined;
  return `variables and base_url fill ${characters} characters in all fields together; allowed: ${mostFilled.characters}; use shorter ones, or fewer {{NAME}}`;
}

/** What a value counts besides its characters: an object may be a schema, an element a value that is allowed. */
const moreOf = { object: 40, element: 8, characterOfPattern: 8 };
/** What a compiled tool counts, and each header of the server that it has. */
const countOf = { tool: 500, sharedHeader: 2 };
/** A URL is compiled to a list of its parts, which takes five times as much as other texts. */
const moreOfUrl = 4;

/** The size of a JSON value when it is compiled, in characters of about ten bytes. */
export function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length + 3;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 0;
  if (Array.isArray(value)) {
    for (const item of value) size += moreOf.element + sizeOfValue(item);
    return size;
  }
  for (const [name, inner] of Object.entries(value)) {
    size += name.length + 4 + sizeOfValue(inner);
    if (name === 'pattern' && typeof inner === 'string') size += moreOf.characterOfPattern * inner.length;
  }
  return moreOf.object + size;
}

/** What a compiled tool of this server counts besides its text. */
function ofEachTool({ headers = {} }: { headers?: Record<string, string> | undefined }): number {
  return countOf.tool + countOf.sharedHeader * Object.keys(headers).length;
}

/** The part of a configuration that its size depends on. */
type Sized = ServerWide & { tools: readonly Tool[]; views?: Record<string, View> | undefined };

/** What a view counts besides its tools, and for each of them: its list, or the words to search. */
const ofViews = { view: 500, tool: 30, partOfText: 0.15 };
/** Most that all compiled views of a server keep. The largest tool fits in it. */
const mostOfViews = 5_000_000;

/** Sizes of the compiled views of a server, in characters of about ten bytes. */
type ViewSizes = {
  /** A view without the tools that are compiled for it. */
  ofView(view: View): number;
  /** A tool that is compiled for a view, because the view fixes arguments of it. */
  ofTool(tool: Tool): number;
  /** How much all compiled views of the server may keep together. */
  room(): number;
};

export function viewSizes(config: Sized): ViewSizes {
  const { views = {}, tools } = config;
  const urlOf = urlsBelow(config);
  const index = indexTools(tools);
  const known = new Map<Tool, number>();
  const sizeOf = (tool: Tool): number => {
    const size = known.get(tool) ?? sizeOfValue(tool);
    known.set(tool, size);
    return size;
  };
  const ofTool = (tool: Tool) => sizeOf(tool) + ofEachTool(config) + (1 + moreOfUrl) * urlOf(tool.url).length;
  const ofView = (view: View): number => {
    const sizes = toolsOfView(view, index).map(({ tool }) => ofViews.tool + ofViews.partOfText * sizeOf(tool));
    return Math.ceil(sizes.reduce((sum, size) => sum + size, ofViews.view));
  };
  return {
    ofView,
    ofTool,
    room() {
      let room = 0;
      for (const view of Object.values(views)) {
        room += ofView(view);
        for (const { tool, change } of toolsOfView(view, index)) if (change?.arguments) room += ofTool(tool);
        if (room >= mostOfViews) return mostOfViews;
      }
      return room;
    },
  };
}

/** Most of a configuration. A thousand tools with twenty described arguments each take half of it. */
const mostOfConfig = 12_000_000;

/** The size of a compiled server with its views, and with what is filled in it. */
export function compiledSize(config: Sized, { urls, inUrls, elsewhere }: Filling): number {
  const ofTools = sizeOfValue(config) + ofEachTool(config) * config.tools.length;
  const filled = inUrls + moreOfUrl * (urls + inUrls);
  // The tools of views that fix arguments share one copy of what is filled.
  const copies = config.views === undefined ? 1 : 2;
  return Math.ceil(ofTools + filled + copies * elsewhere + viewSizes(config).room());
}

/** Why a configuration is too large when it is filled or compiled. */
export function tooLargeProblem(config: Sized): string | undefined {
  const filling = fillingOf(config);
  const tooMuch = wholeFillingProblem(filling);
  if (tooMuch !== undefined) return tooMuch;
  const size = compiledSize(config, filling);
  if (size <= mostOfConfig) return undefined;
  return `counts ${size} characters when it is compiled: its text, 500 for each tool, 40 for each object, 8 for each element of an array and 8 more for each character of a pattern; allowed: ${mostOfConfig}; use several servers`;
}

/** What variables fill in a configuration. */
export function fillingOf({ base_url, headers, variables = {}, tools, views = {} }: Sized): Filling {
  const filling: Filling = { urls: 0, inUrls: 0, elsewhere: 0, placeholders: 0 };
  const add = (value: unknown, where: 'inUrls' | 'elsewhere' = 'elsewhere') =>
    visitPlaceholders(value, variables, (length = 0, _, times) => {
      filling.placeholders += times;
      filling[where] += length * times;
    });
  const base = base_url === undefined ? 0 : filledLength(base_url, variables);
  add(base_url);
  add(headers);
  for (const tool of tools) {
    const [url, ...others] = filledValuesOf(tool);
    add(url, 'inUrls');
    filling.urls += tool.url.length;
    // A variable may be the slash with which such a URL begins.
    if (!/^[A-Za-z]/.test(tool.url)) filling.inUrls += base;
    for (const value of others) add(value);
  }
  for (const { tools: named = [] } of Object.values(views)) {
    for (const entry of named) add(viewToolOf(entry).arguments);
  }
  return filling;
}
