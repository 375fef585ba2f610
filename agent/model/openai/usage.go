package openai

import (
	"encoding/json"

	"skein/agent/model"
	"skein/agent/model/wire"
)

type serverUsage struct {
	Prompt        *int64 `json:"prompt_tokens"`
	Completion    *int64 `json:"completion_tokens"`
	CacheHit      *int64 `json:"prompt_cache_hit_tokens"`
	PromptDetails struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage reads the counters. What the server does not tell, or tells as nonsense, stays
// unknown; without a figure for the cache the whole prompt counts as Input.
func usage(raw json.RawMessage) model.Usage {
	var u serverUsage
	if json.Unmarshal(raw, &u) != nil {
		return model.Usage{}
	}
	out := model.Usage{
		Input:     wire.Count(u.Prompt),
		CacheRead: wire.Count(u.CacheHit),
		Output:    wire.Count(u.Completion),
		Reasoning: wire.Count(u.CompletionDetails.Reasoning),
	}
	if !out.CacheRead.Known {
		out.CacheRead = wire.Count(u.PromptDetails.Cached)
	}
	if !out.Input.Known || out.CacheRead.N > out.Input.N {
		out.CacheRead = model.Count{}
	}
	out.Input.N -= out.CacheRead.N
	return out
}
