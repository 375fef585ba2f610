package delegate

import "skein/agent/model"

// Mode is what a child is told of its parent's conversation.
type Mode string

// The context modes. Off is no delegation at all: delegate_task is not offered.
const (
	Full     Mode = "full"
	NoTools  Mode = "no-tools"
	TaskOnly Mode = "task-only"
	Off      Mode = "off"
)

// Modes lists them in the order of the help text.
func Modes() []Mode { return []Mode{Full, NoTools, TaskOnly, Off} }

// Front returns the messages a child starts with, before its own first user message: of
// those the parent had before the assistant message that asked for the child. Their raw
// forms are shared, so that in full mode the child's first request begins with the bytes
// of its parent's last one.
func Front(m Mode, parent []model.Message) []model.Message {
	switch m {
	case Full:
		return parent
	case NoTools:
		var front []model.Message
		for _, msg := range parent {
			talk := msg.Role == model.Assistant && len(msg.Calls) == 0
			if talk || msg.Role == model.System || msg.Role == model.User {
				front = append(front, msg)
			}
		}
		return front
	default:
		for i, msg := range parent {
			if msg.Role == model.System {
				return parent[i : i+1]
			}
		}
		return nil
	}
}

// sees ends the tool's description: what a child of this mode knows.
func (m Mode) sees() string {
	switch m {
	case Full:
		return "The subagent sees this whole conversation so far as background, and the task."
	case NoTools:
		return "The subagent sees what the user and you said so far, but no tool calls and no results, and the task: repeat in the task what you learned from tools."
	default:
		return "The subagent sees nothing of this conversation, only the task: put everything it needs to know into it."
	}
}
