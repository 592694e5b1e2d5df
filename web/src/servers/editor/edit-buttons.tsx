import { ActionIcon, type ActionIconProps, Button, Group, Tooltip } from '@mantine/core';
import { type Icon, IconPlus, IconX } from '@tabler/icons-react';
import { useEditor } from './model/editor-context.ts';

type IconButtonProps = ActionIconProps & { label: string; icon?: Icon; onClick: () => void; 'aria-expanded'?: boolean };

/** A change of a part of the configuration, or what opens more of it. Viewers have only the latter. */
export function IconButton({ label, icon: Shown = IconX, onClick, ...rest }: IconButtonProps) {
  const { isReadOnly } = useEditor();
  if (isReadOnly && rest['aria-expanded'] === undefined) return null;
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" size="md" aria-label={label} onClick={onClick} {...rest}>
        <Shown size={16} />
      </ActionIcon>
    </Tooltip>
  );
}

/** Adds a part to the configuration; nothing for viewers. */
export function AddButton({ children, onClick }: { children: string; onClick: () => void }) {
  const { isReadOnly } = useEditor();
  if (isReadOnly) return null;
  return (
    <Group>
      <Button variant="subtle" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={onClick}>
        {children}
      </Button>
    </Group>
  );
}
