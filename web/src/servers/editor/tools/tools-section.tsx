import { Button, Stack, Text } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { type Ref, useEffect, useEffectEvent, useRef, useState } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { Section } from '../../../ui/section.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { listOf, newTool, textOf, toolsOf, valueAt } from '../../config.ts';
import { Errors, Warnings } from '../field-messages.tsx';
import { declared, Fields } from '../fields.tsx';
import { fieldId, useEdited, useEditor, useMessages } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { OpenTool } from './open-tool.tsx';
import { ToolTable } from './tool-table.tsx';

const modes = [
  { value: 'list', label: 'List all tools' },
  { value: 'search', label: 'Search: agents find, read, and call tools, and see only pinned ones' },
];

const searches = 'Search uses a few hundred tokens per conversation, however many tools there are.';
const cuts = 'Longer responses are cut between items or lines. Agents read the remainder with read_more.';
const ofAll = [
  declared.choice('tool_mode', 'Tool delivery', searches, modes, { placeholder: 'List all tools' }),
  declared.number('max_answer_tokens', 'Max response tokens', cuts, { placeholder: 'No limit' }),
];

/** Tools in the order in which agents see them, and the tool that is open. */
export function ToolsSection({ bar }: { bar: Ref<HTMLDivElement> }) {
  const { isReadOnly } = useEditor();
  const { count, open, add, ...changes } = useToolList();
  return (
    <Section
      title="Tools"
      text="A tool is one HTTP request. Agents choose a tool by its name and description."
      actions={
        !isReadOnly && (
          <Button variant="default" size="xs" leftSection={<IconPlus size={14} />} onClick={add}>
            Add tool
          </Button>
        )
      }
    >
      <Stack gap="xs" id={fieldId('tools')} tabIndex={-1}>
        {count === 0 ? (
          <Text size="sm" c="dimmed">
            No tools yet.
          </Text>
        ) : (
          <ToolTable count={count} open={open} onMove={changes.move} />
        )}
        <OpenTool index={open} count={count} bar={bar} {...changes} />
        <TwoColumns>
          <Fields path={[]} of={ofAll} />
        </TwoColumns>
        <Messages />
      </Stack>
    </Section>
  );
}

/** Messages about the tool list. Separate component, because they may change on every keystroke. */
function Messages() {
  const { errors, warnings } = useMessages(['tools']);
  return (
    <>
      <Errors list={errors} />
      <Warnings list={warnings} />
    </>
  );
}

/** Manages the open tool. For a stored server it is in the URL: a link opens the tool, and going back closes it. */
function useOpenTool() {
  const { store, isNew } = useEditor();
  const navigate = useNavigate();
  const { pathname, state } = useLocation();
  const [search] = useSearchParams();
  const named = search.get('tool');
  const nameAt = (index: number) => textOf(valueAt(store.now().config, ['tools', index, 'name']));
  const indexOf = (name: string | null) => {
    const index = toolsOf(store.now().config).findIndex((tool) => textOf(tool.name) === name);
    return index < 0 ? undefined : index;
  };
  const [open, show] = useState(() => (isNew ? 0 : indexOf(named)));
  const [seen, see] = useState(named);
  if (seen !== named) {
    see(named);
    // If the open tool has this name, it stays open, even if another tool has the same name.
    if (named === null || open === undefined || nameAt(open) !== named) show(indexOf(named));
  }
  // True if the open tool has its own history entry above that of the list.
  const isAbove = useRef((state as { isAbove?: boolean } | null)?.isAbove === true);
  const setOpen = (index: number) => {
    show(index);
    const name = nameAt(index);
    if (isNew || name === named) return;
    const replace = open !== undefined || named !== null;
    isAbove.current ||= !replace;
    const address = `${pathname}?${new URLSearchParams({ tool: name })}`;
    void navigate(address, { replace, state: { isAbove: isAbove.current }, preventScrollReset: true });
  };
  const close = () => {
    show(undefined);
    if (isAbove.current) void navigate(-1);
    else if (named !== null) void navigate(pathname, { replace: true, preventScrollReset: true });
    isAbove.current = false;
  };
  useWindowEvent('toolhost:open-tool', ({ detail }) => setOpen(detail));
  // Updates the URL when a renamed tool has been saved.
  const stored = useEdited(({ initial }) => initial);
  const rename = useEffectEvent(() => {
    if (named !== null && open !== undefined) setOpen(open);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `stored` is the trigger
  useEffect(() => rename(), [stored]);
  return { open, show, close };
}

/** Returns the open tool and the operations on the tool list. */
function useToolList() {
  const { store } = useEditor();
  const { open, show, close } = useOpenTool();
  const count = useEdited(({ config }) => listOf(config.tools).length);
  const now = () => toolsOf(store.now().config);
  const put = (next: unknown[]) => store.set(['tools'], next);
  return {
    count,
    open,
    close,
    move: (from: number, to: number) => {
      const tools = now();
      const tool = tools[from];
      if (tool === undefined || to < 0 || to >= tools.length || from === to) return;
      put(tools.toSpliced(from, 1).toSpliced(to, 0, tool));
      show((index) => (index === undefined ? undefined : movedIndex(index, from, to)));
    },
    add: () => {
      put([...now(), newTool]);
      goToField(`tools[${count}].name`);
    },
    duplicate: (index: number) => {
      const tools = now();
      put(tools.toSpliced(index + 1, 0, { ...tools[index], name: copyName(tools, index) }));
      goToField(`tools[${index + 1}].name`);
    },
    remove: (index: number) => {
      put(now().toSpliced(index, 1));
      close();
    },
  };
}

/** Returns the index of a tool after the tool at `from` has moved to `to`. */
function movedIndex(index: number, from: number, to: number): number {
  if (index === from) return to;
  if (from < index && index <= to) return index - 1;
  return to <= index && index < from ? index + 1 : index;
}

/** Returns an unused name for a copy: `list_tasks` → `list_tasks_2`, or the next free number. */
function copyName(tools: readonly JsonObject[], index: number): string {
  const names = new Set(tools.map((tool) => textOf(tool.name)));
  const base = textOf(tools[index]?.name).replace(/_\d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${base}_${number}`;
    if (!names.has(name)) return name;
  }
}
