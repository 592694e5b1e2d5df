import { type Filling, wholeFillingProblem } from './filling/filled-lengths.ts';
import { moreOfUrl, ofEachTool, sizeOfValue } from './filling/value-size.ts';
import { fillingOf, type ServerWide, urlsBelow } from './server-wide.ts';
import type { Tool } from './tool.ts';
import { indexTools, toolsOfView, type View } from './view.ts';

/** The part of a configuration that its size depends on. */
type Sized = ServerWide & { tools: readonly Tool[]; views?: Record<string, View> | undefined };

/** What a view counts besides its tools, and for each of them: its list, or the words to search. */
const ofViews = { view: 500, tool: 30, partOfText: 0.15 };
/** Most that all compiled views of a server keep. The largest tool fits in it. */
const mostOfViews = 5_000_000;

/** Sizes of the compiled views of a server, in characters of about ten bytes. */
export type ViewSizes = {
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
