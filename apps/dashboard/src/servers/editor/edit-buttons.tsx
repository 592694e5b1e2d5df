import { ActionIcon, type ActionIconProps, Button, Group, Tooltip } from '@mantine/core';
import { type Icon, IconArrowDown, IconArrowUp, IconPlus, IconX } from '@tabler/icons-react';
import { useEditor } from './model/editor-context.ts';

type IconButtonProps = ActionIconProps & { label: string; icon?: Icon; onClick: () => void; 'aria-expanded'?: boolean };

/** Button that changes the configuration or expands details. Viewers see only the latter. */
export function IconButton({ label, icon: IconComponent = IconX, onClick, ...rest }: IconButtonProps) {
  const { isReadOnly } = useEditor();
  if (isReadOnly && rest['aria-expanded'] === undefined) return null;
  return (
    <Tooltip label={label}>
      <ActionIcon aria-label={label} onClick={onClick} {...rest}>
        <IconComponent size={16} />
      </ActionIcon>
    </Tooltip>
  );
}

type MoveButtonsProps = { label: string; index: number; count: number; move: (from: number, to: number) => void };

/** Buttons that move an entry of a list of `count` entries up or down. */
export function MoveButtons({ label, index, count, move }: MoveButtonsProps) {
  const getProps = (direction: 'up' | 'down', to: number) => ({
    label: `Move ${label} ${direction}`,
    onClick: () => move(index, to),
    disabled: to < 0 || to >= count,
  });
  return (
    <>
      <IconButton icon={IconArrowUp} {...getProps('up', index - 1)} />
      <IconButton icon={IconArrowDown} {...getProps('down', index + 1)} />
    </>
  );
}

/** Button that adds an entry to the configuration. Hidden from viewers. */
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
