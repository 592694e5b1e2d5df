import { Autocomplete, Button, Group, Popover, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState } from 'react';
import type { JsonObject } from '../../../answers.ts';
import { visible } from '../../../ui/text/visible.ts';
import { isObject, listOf, textOf, toolsOf, valueAt, viewsOf, withValue } from '../../config.ts';
import { useEditor } from '../model/editor-context.ts';

type Props = { indexes: ReadonlySet<number>; onLeave: () => void };

const small = { size: 'compact-sm', variant: 'default' } as const;

/** Actions for the selected tools. Nothing is stored until Save. */
export function SelectedTools({ indexes, onLeave }: Props) {
  const { store } = useEditor();
  const now = () => toolsOf(store.now().config);
  const each = (name: string, next: (tool: JsonObject) => unknown) => {
    const changed = (tool: JsonObject) => withValue(tool, [name], next(tool));
    const all = now().map((tool, index) => (indexes.has(index) ? changed(tool) : tool));
    store.set(['tools'], all);
  };
  const remove = () => {
    const kept = now().filter((_, index) => !indexes.has(index));
    store.set(['tools'], kept);
    onLeave();
  };
  const addToView = (view: string) => {
    const path = ['views', view, 'tools'];
    const before = listOf(valueAt(store.now().config, path));
    const has = new Set(before.map((entry) => (isObject(entry) ? entry.name : entry)));
    const names = now().flatMap(({ name }, index) => (indexes.has(index) && !has.has(name) ? [name] : []));
    store.set(path, [...before, ...names]);
  };
  return (
    <Group gap={6} mb="xs" role="group" aria-label="Selected tools">
      <Text size="sm" fw={600} mr={4} role="status">
        {indexes.size} selected
      </Text>
      <Button {...small} onClick={() => each('disabled', () => undefined)}>
        Enable
      </Button>
      <Button {...small} onClick={() => each('disabled', () => true)}>
        Disable
      </Button>
      <Ask
        label="Tag"
        known={now().flatMap((tool) => listOf(tool.tags).map(textOf))}
        placeholder="Tag, such as billing"
        onAnswer={(tag) => each('tags', (tool) => [...new Set([...listOf(tool.tags), tag])])}
      />
      <Ask
        label="Add to view"
        known={Object.keys(viewsOf(store.now().config))}
        placeholder="View, such as finance"
        onAnswer={addToView}
      />
      <Button {...small} onClick={remove} c="var(--th-bad)">
        Delete
      </Button>
      <Button {...small} variant="subtle" color="gray" onClick={onLeave}>
        Clear
      </Button>
    </Group>
  );
}

type AskProps = { label: string; known: readonly string[]; placeholder: string; onAnswer: (text: string) => void };

/** Button that prompts for an existing or new name. */
function Ask({ label, known, placeholder, onAnswer }: AskProps) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const [text, setText] = useState('');
  return (
    <Popover opened={isOpen} onChange={close} trapFocus withArrow>
      <Popover.Target>
        <Button {...small} onClick={toggle} aria-expanded={isOpen}>
          {label}…
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim() === '') return;
            onAnswer(text.trim());
            setText('');
            close();
          }}
        >
          <Group gap="xs" wrap="nowrap">
            <Autocomplete
              aria-label={label}
              placeholder={placeholder}
              data={[...new Set(known)].filter((name) => name !== '' && visible(name) === name)}
              value={text}
              onChange={setText}
              comboboxProps={{ withinPortal: false }}
              size="xs"
              data-autofocus
            />
            <Button type="submit" size="xs">
              Add
            </Button>
          </Group>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
